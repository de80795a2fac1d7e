"""Checkpoints: what a training run needs to resume with the same bits, when it is written, and how it is restored."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.core.arrays import Floats
from cobre.core.config import Config
from cobre.core.policy_cost import CostSample, PolicyCost, latest_cost
from cobre.errors import CobreError
from cobre.io.storage.array_file import (
    ArrayFile,
    ArrayFileError,
    Arrays,
    StreamedArray,
    array_bytes,
    parse_arrays,
    write_arrays,
)
from cobre.io.storage.atomic import check_writable, remove_leftovers
from cobre.io.storage.confined import remove_file
from cobre.records import dataclass
from cobre.sddp.cut_pool import CutPool, CutSet
from cobre.sddp.iteration_records import IterationRecord, PhaseTimes, TrialPoints, from_vector, to_vector
from cobre.sddp.training.context import TrainingState
from cobre.sddp.training.visited_states import StoredStates, VisitedStates, entry_flags
from cobre.solver.batches import Bases
from cobre.study.preparation.fingerprint import Fingerprint
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_CHECKPOINT_SECONDS, TrainingRequest


def share_bytes(comm: Communicator, content: bytes, label: str) -> memoryview:
    """Broadcast rank 0's bytes. Collective."""
    if comm.size == 1:
        return memoryview(content)
    size = np.array([len(content)], np.int64)
    comm.broadcast(size, 0, label=f"size of the {label}")
    buffer = np.frombuffer(content, np.uint8).copy() if comm.rank == 0 else np.empty(int(size[0]), np.uint8)
    comm.broadcast(buffer, 0, label=label)
    return buffer.data


class LargeArrays:
    """Arrays of a file that rank 0 has open. shapes: by name, the same on all ranks."""

    def __init__(self, comm: Communicator, file: ArrayFile | None, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._comm = comm
        self._file = file
        self.shapes = shapes

    def read_on_rank_0(self, name: str, start: int, count: int) -> Floats | None:
        """Read consecutive numbers on rank 0; return None on the others."""
        return None if self._file is None else self._file.part(name, start, count)

    def read(self, name: str, start: int, count: int, *, for_all: bool) -> Floats | None:
        """Read consecutive numbers on rank 0 and, with `for_all`, broadcast them; return None on ranks without them.

        Collective with `for_all`.
        """
        numbers = self.read_on_rank_0(name, start, count)
        if not for_all:
            return numbers
        table = np.empty(count) if numbers is None else numbers
        self._comm.broadcast(table, 0, label="piece of the checkpoint")
        return table

    def broadcast(self, table: NDArray[Any]) -> None:
        """Broadcast a table of rank 0."""
        self._comm.broadcast(table.reshape(-1), 0, label="facts of the checkpoint")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


SUFFIX = ".ckpt"
_NAME = re.compile(r"iteration-(\d{6,})\.ckpt")
_NUMBERS = ("lower_bound", "upper_bound", "upper_bound_std", "elapsed_s")
_COUNTS = ("iteration", "forward_passes", "solves", "simplex_iterations", "cuts", "cuts_active")
_CHANCES = "chances_of_openings"  # by stage; only if paths are drawn by the weights of the risk measure
_FIRST_STAGE_ENDS = "history_first_stage_ends"  # of the latest iterations; only if a stopping rule reads them
_STATES, _STATES_KEPT = "visited_states", "visited_entries"  # only where selection or an export reads them
_BOUND_BASES, _BOUND_CUTS = "bound_bases", "bound_basis_cuts"  # by opening; only of a large first stage
_COEFFICIENTS = "coefficients"
LARGE = (_COEFFICIENTS, _STATES)  # read piece by piece
_TIMES = ("forward_s", "backward_s", "bound_s", "exchange_s", "solver_s")


class CheckpointError(CobreError):
    """A checkpoint that does not exist, is damaged, or belongs to another run."""

    remedy = "resume with the case and settings of the checkpoint, or run without --resume"


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
        """The number of its last iteration."""
        return len(self.history)


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the paths of all checkpoints in a folder, the newest first; empty if there is no folder."""
    names = [path for path in folder.glob(f"*{SUFFIX}") if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(names, key=iteration_of, reverse=True)


def iteration_of(path: Path) -> int:
    """Return the iteration of a checkpoint, from its name."""
    return int(path.stem.split("-")[1])


def newest_checkpoint(folder: Path, on_warning: Callable[[str], None]) -> ArrayFile:
    """Open the newest undamaged checkpoint of a folder, with a warning for each damaged one that is newer."""
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
    """Return on all ranks the checkpoint that rank 0 has opened; None if there is none. Collective.

    Large arrays stay in the file until they are needed, and are read in pieces.
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
        raise CheckpointError(f"{path} is not a checkpoint of a training run: {error!r}") from error
    return Checkpoint(path, fingerprint, history, arrays, large)


def _outline(file: ArrayFile) -> bytes:
    """Return all small arrays, and the shapes of the large ones."""
    large = {name: file.shape(name) for name in LARGE if name in file.names}
    arrays = {name: file.array(name) for name in file.names if name not in LARGE}
    return array_bytes({"path": str(file.path), "facts": file.facts, "large": large}, arrays)


def check_same_run(checkpoint: Checkpoint, fingerprint: Fingerprint, changes: Callable[[], str] = lambda: "") -> None:
    """Raise CheckpointError unless the checkpoint has this fingerprint.

    changes: called if the case differs; describes the changed files of the case, empty if unknown.
    """
    if differences := fingerprint.differences(checkpoint.fingerprint):
        if fingerprint.case != checkpoint.fingerprint.case and (words := changes()):
            differences.append(words)
        raise CheckpointError(
            f"{checkpoint.path} belongs to another run ({'; '.join(differences)}): use the case and versions of "
            "that run, or start a new run with --warm-start and its policy"
        )


def snapshot(state: TrainingState, history: Sequence[IterationRecord]) -> dict[str, NDArray[Any] | StreamedArray]:
    """Copy what changes from iteration to iteration; cuts and visited states, which do not, are read while writing.

    Training need not wait for a copy of these.
    """
    pool, count, stages = state.pool, state.pool.count, range(state.pool.num_stages)

    def coefficients() -> Iterator[Floats]:
        return (block.coefficients for stage in stages for block in pool.blocks(stage, count))

    unknown = (math.nan,) * 4  # stands for a missing cost sample, or for errors at trial points that were not measured
    points = [unknown if record.trial_points is None else astuple(record.trial_points) for record in history]
    samples = [unknown if record.cost_sample is None else astuple(record.cost_sample) for record in history]
    arrays: dict[str, NDArray[Any] | StreamedArray] = {
        "intercepts": np.stack([pool.intercepts(stage) for stage in stages]),
        _COEFFICIENTS: StreamedArray((len(stages), count, pool.dimension), np.dtype(np.float64), coefficients),
        "active": pool.active.copy(),
        "written": pool.written.copy(),
        "created": pool.created.copy(),
        "forward_pass": pool.forward_pass.copy(),
        "history_numbers": np.array([[getattr(record, name) for name in _NUMBERS] for record in history]),
        "history_counts": np.array([[getattr(record, name) for name in _COUNTS] for record in history], np.int64),
        "history_times": np.array([[getattr(record.times, name) for name in _TIMES] for record in history]),
        "history_exact": np.array([record.is_exact for record in history], np.uint8),
        "history_solver": np.array([to_vector(record.solver) for record in history]),
        "history_trial_points": np.array(points, np.float64),  # None is stored as NaN
        "history_cost_samples": np.array(samples, np.float64),
    }
    if (draws := state.risk_draws) is not None:
        arrays[_CHANCES] = np.concatenate(draws.sampling_probabilities)
    if ends := [record.first_stage_end for record in history if record.first_stage_end is not None]:
        arrays[_FIRST_STAGE_ENDS] = np.array(ends)
    for stage, bases in enumerate(state.bases):
        arrays[f"basis_{stage}"], arrays[f"basis_cuts_{stage}"] = bases.status.copy(), bases.cuts.copy()
    if (bound := state.first_stage_bases) is not None:
        arrays[_BOUND_BASES], arrays[_BOUND_CUTS] = bound.status, bound.cuts  # never changed in place
    if len(state.visited):
        arrays[_STATES_KEPT] = entry_flags(state.visited, pool.dimension)
        arrays[_STATES] = _visited(state.visited)
    return arrays


def _visited(visited: VisitedStates) -> StreamedArray:
    """Stream the visited states, stage by stage."""
    views = [view for start in range(visited.num_stage_starts) for view in visited.views(start)]
    return StreamedArray((sum(view.size for view in views),), np.dtype(np.float64), lambda: iter(views))


def restore(state: TrainingState, checkpoint: Checkpoint, forward_passes: int) -> None:
    """Restore cuts, bases and visited states from a checkpoint, and close its file; the pool must be empty.

    forward_passes: their number in an iteration.
    """
    with closing(checkpoint.large):
        _restore(state, checkpoint, forward_passes)


def _restore(state: TrainingState, checkpoint: Checkpoint, forward_passes: int) -> None:
    arrays, pool = checkpoint.arrays, state.pool
    count = len(arrays["created"])
    restore_cuts(pool, checkpoint, count)
    pool.active[:, :count], pool.written[:, :count] = arrays["active"], arrays["written"]
    pool.created[:count], pool.forward_pass[:count] = arrays["created"], arrays["forward_pass"]
    state.bases = [Bases(arrays[f"basis_{stage}"], arrays[f"basis_cuts_{stage}"]) for stage in range(len(state.bases))]
    if _BOUND_BASES in arrays:
        state.first_stage_bases = Bases(arrays[_BOUND_BASES], arrays[_BOUND_CUTS])
    if state.risk_draws is not None and _CHANCES in arrays:
        state.risk_draws.restore(arrays[_CHANCES])
    if _STATES in checkpoint.large.shapes:
        _restore_states(state, checkpoint, forward_passes)
    state.began -= checkpoint.history[-1].elapsed_s


def restore_cuts(pool: CutPool, checkpoint: Checkpoint, count: int) -> None:
    """Fill an empty pool, with the coefficients of only one stage at a time in memory. Collective."""
    large, stages, intercepts = checkpoint.large, range(pool.num_stages), checkpoint.arrays["intercepts"]
    shape = (pool.num_stages, count, pool.dimension)
    if large.shapes[_COEFFICIENTS] != shape:
        raise CheckpointError(f"{checkpoint.path} has cuts of shape {large.shapes[_COEFFICIENTS]}, expected {shape}")
    used, size = np.zeros((pool.num_stages, pool.dimension)), count * pool.dimension
    for stage in stages:
        if (coefficients := large.read_on_rank_0(_COEFFICIENTS, stage * size, size)) is not None:
            used[stage] = coefficients.reshape(count, pool.dimension).any(axis=0)
    large.broadcast(used)
    for stage in stages:
        pool.ensure_components(stage, used[stage : stage + 1])
    slots = pool.reserve_slots(0, count)
    for stage in stages:
        coefficients = large.read(_COEFFICIENTS, stage * size, size, for_all=not pool.is_shared_by_all_ranks)
        if coefficients is None:
            pool.publish(stage, slots)
        else:
            pool.write(stage, slots, CutSet(intercepts[stage], coefficients.reshape(count, pool.dimension)))


def _restore_states(state: TrainingState, checkpoint: Checkpoint, forward_passes: int) -> None:
    (count,), for_all = checkpoint.large.shapes[_STATES], not state.pool.is_shared_by_all_ranks

    def read(start: int, numbers: int) -> Floats | None:
        return checkpoint.large.read(_STATES, start, numbers, for_all=for_all)

    stored = StoredStates(checkpoint.arrays[_STATES_KEPT], count, read)
    if state.visited.has_all_entries and not stored.kept.all():
        raise CheckpointError(
            f"{checkpoint.path} lacks some states that exports.states needs: resume without exports.states"
        )
    state.visited.restore(stored, stored.count // forward_passes)


def _history(arrays: dict[str, NDArray[Any]]) -> tuple[IterationRecord, ...]:
    """Return the iterations of a checkpoint. Raises KeyError for a file without some of their numbers."""
    names = ("numbers", "counts", "times", "exact", "solver", "trial_points", "cost_samples")
    ends: list[Any] = [tuple(row) for row in arrays.get(_FIRST_STAGE_ENDS, np.zeros((0, 0))).tolist()]
    ends = [None] * (len(arrays["history_counts"]) - len(ends)) + ends
    rows = zip(*(arrays[f"history_{name}"].tolist() for name in names), ends, strict=True)
    return tuple(
        IterationRecord(
            **dict(zip(_NUMBERS, numbers, strict=True)),
            **dict(zip(_COUNTS, counts, strict=True)),
            times=PhaseTimes(*times),
            solver=from_vector(np.array(solver)),
            is_exact=bool(is_exact),
            trial_points=_trial_points(*points),
            cost_sample=None if math.isnan(sample[0]) else CostSample(int(sample[0]), *sample[1:]),
            first_stage_end=end,
        )
        for numbers, counts, times, is_exact, solver, points, sample, end in rows
    )


def _trial_points(excess: float, std: float, overstated: float, worst: float) -> TrialPoints | None:
    """Return the errors at trial points; NaN stands for None."""
    if math.isnan(excess):
        return None
    return TrialPoints(excess, std) if math.isnan(overstated) else TrialPoints(excess, std, overstated, worst)


def with_policy_costs(history: Sequence[IterationRecord], *, is_estimate: bool) -> tuple[IterationRecord, ...]:
    """Add the costs of policies, computed from cost samples, to the iterations of a checkpoint."""
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


NEVER = 10**9  # iterations; a checkpoint follows the last one in any case


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The folder of checkpoints and when they are due.

    first: the iteration of the first one, by default `every`. keep: number of the newest that are kept. seconds:
    longest time between two; None: no limit.
    """

    folder: Path
    every: int = DEFAULT_CHECKPOINT_INTERVAL
    first: int | None = None
    keep: int = 2
    seconds: float | None = None

    @classmethod
    def of(cls, request: TrainingRequest, config: Config) -> Self | None:
        """Return the plan by the request, else by the case, else every ten iterations; None without checkpoints."""
        if request.checkpoints is None:
            return None
        every, first = DEFAULT_CHECKPOINT_INTERVAL, None
        if request.checkpoint_every is not None:
            every = request.checkpoint_every or NEVER
        elif (settings := config.policy.checkpointing).enabled is False:
            every = NEVER
        elif settings.enabled:
            every, first = settings.interval_iterations, settings.initial_iteration
        seconds = None if every == NEVER else request.checkpoint_seconds or DEFAULT_CHECKPOINT_SECONDS
        return cls(request.checkpoints, every, first, request.keep_checkpoints, seconds)

    def is_due(self, iteration: int, age_s: float = 0.0) -> bool:
        """Return whether a checkpoint is due after this iteration, `age_s` seconds after the last one."""
        first = self.first or self.every
        if self.seconds is not None and age_s >= self.seconds:
            return True
        return iteration >= first and (iteration - first) % self.every == 0


class CheckpointWriter:
    """A writer on rank 0, in its own thread: training waits only for `snapshot`.

    fingerprint: called before each checkpoint. on_written: called with the iteration, the path and the seconds that
    training waited. resumed_at: the iteration that the run resumes from. The first checkpoint of this run replaces
    those of an earlier one.
    """

    def __init__(
        self,
        plan: CheckpointPlan,
        fingerprint: Callable[[], Fingerprint],
        on_written: Callable[[int, Path, float], None],
        resumed_at: int = 0,
    ) -> None:
        check_writable(plan.folder)
        remove_leftovers(plan.folder)
        self._own = {path for path in list_checkpoints(plan.folder) if iteration_of(path) <= resumed_at}
        self._plan = plan
        self._fingerprint = fingerprint
        self._on_written = on_written
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cobre-checkpoint")
        self._pending: Future[None] | None = None
        self._last = time.monotonic()
        self._announced = (0, plan.folder, 0.0)

    def on_checkpoint(self, state: TrainingState, history: Sequence[IterationRecord], is_last: bool) -> None:
        """Write a checkpoint when one is due; always after the last iteration."""
        if self._pending is not None and self._pending.done():
            self._wait()
        is_written = len(history) == self._announced[0]  # after a dropped iteration there is nothing new
        if is_written or not (is_last or self._plan.is_due(len(history), time.monotonic() - self._last)):
            return
        self._last = began = time.monotonic()
        self._wait()
        path = self._plan.folder / f"iteration-{len(history):06d}{SUFFIX}"
        facts = {"fingerprint": self._fingerprint().as_dict(), "iterations": len(history)}
        self._pending = self._thread.submit(self._write, path, facts, snapshot(state, history))
        self._announced = (len(history), path, time.monotonic() - began)

    def close(self) -> None:
        """Wait for the last checkpoint; raise the error of its writing."""
        try:
            self._wait()
        finally:
            self._thread.shutdown()

    def _wait(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()
            self._on_written(*self._announced)

    def _write(self, path: Path, facts: dict[str, Any], arrays: Arrays) -> None:
        write_arrays(path, facts, arrays)
        self._own.add(path)
        self._own = set(sorted(self._own, key=iteration_of)[-self._plan.keep :])
        for old in list_checkpoints(self._plan.folder):
            if old not in self._own:
                remove_file(old)
