"""Checkpoints: everything that a training run needs to resume with the same bits, and how it is read back."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Floats
from cobre.errors import CobreError
from cobre.io.storage.array_file import (
    ArrayFile,
    ArrayFileError,
    StreamedArray,
    array_bytes,
    parse_arrays,
)
from cobre.records import dataclass
from cobre.sddp.cuts.pool import CutPool, CutSet
from cobre.sddp.records import phases
from cobre.sddp.records.iteration_record import IterationRecord, PhaseTimes, TrialPoints
from cobre.sddp.records.policy_cost import CostSample, PolicyCost, latest_cost
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.visited import StoredStates, VisitedStates, entry_flags
from cobre.solver.batches import Bases
from cobre.solver.statistics import SolveStatistics
from cobre.study.preparation.fingerprint import Fingerprint
from cobre.study.resume.broadcast_files import LargeArrays, share_bytes

SUFFIX = ".ckpt"
_NAME = re.compile(r"iteration-(\d{6,})\.ckpt")
_NUMBERS = ("lower_bound", "upper_bound", "upper_bound_std", "elapsed_s")
_COUNTS = ("iteration", "forward_passes", "solves", "simplex_iterations", "cuts")
_TRIAL_POINTS = "history_trial_points"  # by iteration; only where they were measured in all of them
_COST_SAMPLES = "history_cost_samples"  # by iteration; only where paths tell what the policy costs
_CHANCES = "chances_of_openings"  # stage after stage; only where paths are drawn by the weights of the risk measure
_EXACT = "history_exact"  # by iteration; only where some upper bound is exact
_STATES, _STATES_KEPT = "visited_states", "visited_entries"  # only where selection or an export reads them
_COEFFICIENTS = "coefficients"
LARGE = (_COEFFICIENTS, _STATES)  # read piece by piece
_UNKNOWN = -1
_TIMES = ("forward_s", "backward_s", "bound_s", "exchange_s", "solver_s")


class CheckpointError(CobreError):
    """There is nothing to resume from, or it belongs to another run."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a training run after an iteration, as read from its file."""

    path: Path
    fingerprint: Fingerprint
    history: tuple[IterationRecord, ...]
    arrays: dict[str, NDArray[Any]]  # all but the large ones
    large: LargeArrays

    @property
    def iteration(self) -> int:
        """The number of the last iteration that it holds."""
        return len(self.history)


def list_checkpoints(folder: Path) -> list[Path]:
    """The paths of all checkpoints in a folder, the newest first; none where there is no folder."""
    names = [path for path in folder.glob(f"*{SUFFIX}") if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(names, key=iteration_of, reverse=True)


def iteration_of(path: Path) -> int:
    """The iteration after which a checkpoint was written, by its name."""
    return int(path.stem.split("-")[1])


def newest_checkpoint(folder: Path, on_warning: Callable[[str], None]) -> ArrayFile:
    """The newest sound checkpoint of a folder, open; a damaged one is passed over with a warning."""
    reasons = []
    for path in list_checkpoints(folder):
        try:
            file = ArrayFile.open(path)
        except (OSError, ArrayFileError) as error:
            reasons.append(str(error))
            continue
        for reason in reasons:
            on_warning(f"{reason}; an older checkpoint is used instead")
        return file
    if reasons:
        raise CheckpointError("no checkpoint can be used: " + "; ".join(reasons))
    raise CheckpointError(f"there is no checkpoint in {folder}: run without --resume")


def read_checkpoint(comm: Communicator, file: ArrayFile | None) -> Checkpoint | None:
    """The checkpoint that rank 0 has opened, on all ranks; None where it has none.

    Large arrays stay in the file until they are wanted, and then come piece by piece.
    """
    content = share_bytes(comm, b"" if file is None else _outline(file), "checkpoint")
    if not len(content):
        return None
    outline, arrays = parse_arrays(Path("checkpoint"), bytes(content))
    path, shapes = Path(outline["path"]), {name: tuple(shape) for name, shape in outline["large"].items()}
    large = LargeArrays(comm, file, shapes)
    try:
        fingerprint, history = Fingerprint(**outline["facts"]["fingerprint"]), _history(arrays)
    except (KeyError, TypeError) as error:
        large.close()
        raise CheckpointError(f"{path} is no checkpoint of a training run: {error!r}") from error
    return Checkpoint(path, fingerprint, history, arrays, large)


def _outline(file: ArrayFile) -> bytes:
    """All but the large arrays, of which there are the shapes."""
    large = {name: file.shape(name) for name in LARGE if name in file.names}
    arrays = {name: file.array(name) for name in file.names if name not in LARGE}
    return array_bytes({"path": str(file.path), "facts": file.facts, "large": large}, arrays)


def check_same_run(checkpoint: Checkpoint, fingerprint: Fingerprint, changes: Callable[[], str] = lambda: "") -> None:
    """Raise CheckpointError unless the checkpoint is of the same problem and programs.

    changes: which files of the case have changed, in words, if known; called only where the case differs.
    """
    if differences := fingerprint.differences(checkpoint.fingerprint):
        if fingerprint.case != checkpoint.fingerprint.case and (words := changes()):
            differences.append(words)
        raise CheckpointError(
            f"{checkpoint.path} belongs to another run ({'; '.join(differences)}): use the case and versions of "
            "that run, or start a new run with --warm-start and its policy"
        )


def snapshot(context: TrainingContext, history: Sequence[IterationRecord]) -> dict[str, NDArray[Any] | StreamedArray]:
    """Copies of what changes from iteration to iteration; what only grows is read when it is written.

    A cut in its slot stays what it is, and so do trial points, so that training need not wait for a copy of them.
    """
    pool, count, stages = context.pool, context.pool.count, range(context.pool.num_stages)

    def coefficients() -> Iterator[Floats]:
        return (block.coefficients for stage in stages for block in pool.blocks(stage, count))

    active = [_UNKNOWN if record.cuts_active is None else record.cuts_active for record in history]
    arrays: dict[str, NDArray[Any] | StreamedArray] = {
        "intercepts": np.stack([pool.intercepts(stage) for stage in stages]),
        _COEFFICIENTS: StreamedArray((len(stages), count, pool.dimension), np.dtype(np.float64), coefficients),
        "in_play": pool.active.copy(),  # `in_play` and `born` are names of the file format; others could not be resumed
        "written": pool.written.copy(),
        "born": pool.created.copy(),
        "forward_pass": pool.forward_pass.copy(),
        "history_numbers": np.array([[getattr(record, name) for name in _NUMBERS] for record in history]),
        "history_counts": np.array([[getattr(record, name) for name in _COUNTS] for record in history], np.int64),
        "history_active": np.array(active, np.int64),
        "history_times": np.array([[getattr(record.times, name) for name in _TIMES] for record in history]),
    }
    if all(record.trial_points is not None for record in history):
        points = [astuple(record.trial_points) for record in history if record.trial_points]
        arrays[_TRIAL_POINTS] = np.array(points, np.float64)  # None becomes NaN
    samples = [record.cost_sample for record in history]
    if any(sample is not None for sample in samples):
        unknown = (0, math.nan, math.nan, math.nan)
        arrays[_COST_SAMPLES] = np.array([unknown if sample is None else astuple(sample) for sample in samples])
    if (draws := context.risk_draws) is not None:
        arrays[_CHANCES] = np.concatenate(draws.chances)
    if any(record.is_exact for record in history):
        arrays[_EXACT] = np.array([record.is_exact for record in history], np.uint8)
    if all(record.solver for record in history):
        arrays["history_solver"] = np.array([phases.to_numbers(record.solver) for record in history])
    for stage, bases in enumerate(context.bases):
        arrays[f"basis_{stage}"], arrays[f"basis_cuts_{stage}"] = bases.status.copy(), bases.cuts.copy()
    if len(context.visited):
        arrays[_STATES_KEPT] = entry_flags(context.visited, pool.dimension)
        arrays[_STATES] = _visited(context.visited)
    return arrays


def _visited(visited: VisitedStates) -> StreamedArray:
    """The visited states, one start of a stage after the other."""
    parts = [view for start in range(visited.num_stage_starts) for view in visited.views(start)]
    return StreamedArray((sum(part.size for part in parts),), np.dtype(np.float64), lambda: iter(parts))


def restore(context: TrainingContext, checkpoint: Checkpoint) -> None:
    """Restore cuts, bases and visited states from a checkpoint, and close its file; the pool must be empty."""
    with closing(checkpoint.large):
        _restore(context, checkpoint)


def _restore(context: TrainingContext, checkpoint: Checkpoint) -> None:
    arrays, pool = checkpoint.arrays, context.pool
    count = len(arrays["born"])
    restore_cuts(pool, checkpoint, count)
    pool.active[:, :count], pool.written[:, :count] = arrays["in_play"], arrays["written"]
    pool.created[:count], pool.forward_pass[:count] = arrays["born"], arrays["forward_pass"]
    context.bases = [
        Bases(arrays[f"basis_{stage}"], arrays[f"basis_cuts_{stage}"]) for stage in range(len(context.bases))
    ]
    if context.risk_draws is not None and _CHANCES in arrays:
        context.risk_draws.restore(arrays[_CHANCES])
    if _STATES in checkpoint.large.shapes:
        _restore_states(context, checkpoint)
    context.began -= checkpoint.history[-1].elapsed_s


def restore_cuts(pool: CutPool, checkpoint: Checkpoint, count: int) -> None:
    """Fill an empty pool stage by stage: one stage's coefficients are in memory beside it, on ranks that need them."""
    large, stages, intercepts = checkpoint.large, range(pool.num_stages), checkpoint.arrays["intercepts"]
    shape = (pool.num_stages, count, pool.dimension)
    if large.shapes[_COEFFICIENTS] != shape:
        raise CheckpointError(f"{checkpoint.path} has cuts of shape {large.shapes[_COEFFICIENTS]}, expected {shape}")
    used, size = np.zeros((pool.num_stages, pool.dimension)), count * pool.dimension
    for stage in stages:
        if (found := large.read_on_rank_0(_COEFFICIENTS, stage * size, size)) is not None:
            used[stage] = found.reshape(count, pool.dimension).any(axis=0)
    large.broadcast(used)
    for stage in stages:
        pool.ensure_components(stage, used[stage : stage + 1])
    slots = pool.reserve_slots(0, count)
    for stage in stages:
        found = large.part(_COEFFICIENTS, stage * size, size, for_all=not pool.is_shared_by_all_ranks)
        if found is None:
            pool.publish(stage, slots)
        else:
            pool.write(stage, slots, CutSet(intercepts[stage], found.reshape(count, pool.dimension)))


def _restore_states(context: TrainingContext, checkpoint: Checkpoint) -> None:
    (count,), for_all = checkpoint.large.shapes[_STATES], not context.pool.is_shared_by_all_ranks

    def read(start: int, numbers: int) -> Floats | None:
        return checkpoint.large.part(_STATES, start, numbers, for_all=for_all)

    stored = StoredStates(checkpoint.arrays[_STATES_KEPT], count, read)
    if context.keeps_states and not stored.kept.all():
        raise CheckpointError(
            f"{checkpoint.path} lacks some states that exports.states needs: resume without exports.states"
        )
    context.visited.restore(stored, stored.count // context.split.total)


def _history(arrays: dict[str, NDArray[Any]]) -> tuple[IterationRecord, ...]:
    iterations = len(arrays["history_counts"])
    active = arrays.get("history_active", np.full(iterations, _UNKNOWN))
    exact = arrays.get(_EXACT, np.zeros(iterations, np.uint8))
    parts = (arrays["history_numbers"], arrays["history_counts"], active, exact, arrays["history_times"])
    stored = arrays.get(_TRIAL_POINTS, np.zeros(0)).tolist()
    points = [_trial_points(*row) for row in stored] or [None] * iterations
    samples = _cost_samples(arrays, iterations)
    others = (_solver_history(arrays, iterations), points, samples)
    rows = zip(*(part.tolist() for part in parts), *others, strict=True)
    return tuple(
        IterationRecord(
            **dict(zip(_NUMBERS, numbers, strict=True)),
            **dict(zip(_COUNTS, counts, strict=True)),
            times=PhaseTimes(*times),
            cuts_active=None if cuts_active == _UNKNOWN else cuts_active,
            solver=solver,
            is_exact=bool(is_exact),
            trial_points=trial_point,
            cost_sample=sample,
        )
        for numbers, counts, cuts_active, is_exact, times, solver, trial_point, sample in rows
    )


def with_policy_costs(history: Sequence[IterationRecord], *, is_estimate: bool) -> tuple[IterationRecord, ...]:
    """The iterations of a checkpoint with what their policies cost, which follows from their samples."""
    samples = [record.cost_sample for record in history]
    return tuple(
        replace(
            record,
            policy_cost=PolicyCost(record.upper_bound, 0.0)
            if record.is_exact
            else latest_cost(samples[: number + 1], is_estimate=is_estimate),
        )
        for number, record in enumerate(history)
    )


def _cost_samples(arrays: dict[str, NDArray[Any]], iterations: int) -> list[CostSample | None]:
    """Samples of the policy's cost; none in checkpoints of older versions."""
    rows = arrays.get(_COST_SAMPLES, np.zeros((iterations, 4))).tolist()
    return [CostSample(int(paths), *sums) if paths else None for paths, *sums in rows]


def _trial_points(excess: float, std: float, overstated: float, worst: float) -> TrialPoints | None:
    """What was found at trial points; NaN stands for None."""
    return TrialPoints(excess, std) if math.isnan(overstated) else TrialPoints(excess, std, overstated, worst)


def _solver_history(arrays: dict[str, NDArray[Any]], iterations: int) -> list[dict[phases.Phase, SolveStatistics]]:
    """What the solver did; empty in checkpoints of older versions."""
    if "history_solver" not in arrays:
        return [{} for _ in range(iterations)]
    return [phases.from_numbers(row) for row in arrays["history_solver"]]
