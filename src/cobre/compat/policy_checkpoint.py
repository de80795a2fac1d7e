"""Policies as plain dictionaries (`cobre.results.load_policy`), and as folders that studies can load."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cobre.compat.stored_results import instant
from cobre.core.file_names import CONVERGENCE, CONVERGENCE_FILE, MANIFEST_FILE, POLICY_FILE, TRAINING
from cobre.core.stage_data import COMMITMENT, IN_TRANSIT
from cobre.core.state_names import INFLOW_LAG, STORAGE, StateName, entity_ids, kind_of
from cobre.errors import ValidationError
from cobre.io.output.results import StoredRows, read_results
from cobre.io.policies.cobre_python_policy import NO_DATE, STATE_KINDS, iso_date
from cobre.io.policies.policy_file import (
    VERSION,
    PolicyData,
    PolicyMetadata,
    StageCuts,
    find_policy_file,
    read_policy,
    write_policy,
)
from cobre.io.storage.atomic import check_writable
from cobre.records import dataclass
from cobre.runs.content import iteration_limit, stored_study

Plain = Mapping[str, Any]


def write_policy_checkpoint(
    path: str | Path,
    stage_cuts: Sequence[Plain],
    metadata: Plain,
    stage_bases: Sequence[Plain] | None = None,
    stage_states: Sequence[Plain] | None = None,
    inflow_lag_depth: int | None = None,
) -> None:
    """Write the folder of a policy; `stage_cuts` and `metadata` are as `cobre.results.load_policy` has them, in $.

    Of the metadata the producer's iterations, bounds, seed and `cost_scale_factor` are kept. Bases and states are not:
    a simulation here finds its own bases, and a warning says so. inflow_lag_depth: number of lagged inflows of every
    plant to add to the state; a cut gives their coefficients as {hydro_id: [lag 1, lag 2, ...]} in
    `inflow_lag_coefficients`.

    Raises ValidationError for dictionaries that make no policy.
    """
    for name, entries in (("stage_bases", stage_bases), ("stage_states", stage_states)):
        if entries:
            warnings.warn(f"{name} are not kept: they are not used", stacklevel=2)
    if not stage_cuts:
        raise ValidationError("stage_cuts is empty: a policy has at least one stage")
    stages = [_Stage.of(index, entries, inflow_lag_depth or 0) for index, entries in enumerate(stage_cuts)]
    names = stages[0].state_names
    for stage in stages:
        if stage.state_names != names:
            raise ValidationError(f"{stage.where}: its entity_manifest differs from that of the first stage")
    scale = _cost_scale(stage_cuts, metadata)
    data = PolicyData(_metadata(stages, metadata, scale), tuple(stage.cuts(scale) for stage in stages))
    check_writable(Path(path))
    write_policy(Path(path) / POLICY_FILE, data)


@dataclass(frozen=True, slots=True)
class _Stage:
    """The dictionary of a stage; `where` is what messages call it."""

    where: str
    given: Plain
    state_names: tuple[str, ...]
    lag_depth: int

    @classmethod
    def of(cls, position: int, given: Plain, lag_depth: int) -> "_Stage":
        where = f"stage_cuts[{position}]"
        manifest = _require_item(given, "entity_manifest", where)
        names = tuple(_state_name(entity, f"{where}.entity_manifest[{at}]") for at, entity in enumerate(manifest))
        dimension = _require_item(given, "state_dimension", where)
        if len(names) != dimension:
            raise ValidationError(f"{where}: entity_manifest has {len(names)} entries for state_dimension={dimension}")
        if lag_depth and any(kind_of(name) != STORAGE for name in names):
            raise ValidationError(f"{where}: with inflow_lag_depth, entity_manifest may contain only storages")
        plants = entity_ids(names, STORAGE)
        lags = (str(StateName(INFLOW_LAG, id_, lag)) for lag in range(1, lag_depth + 1) for id_ in plants)
        return cls(where, given, (*names, *lags), lag_depth)

    def cuts(self, scale: float) -> StageCuts:
        """Return the cuts in the order of their slots; intercepts and coefficients in $ are divided by `scale`."""
        entries = sorted(_require_item(self.given, "cuts", self.where), key=lambda cut: int(cut.get("slot_index", 0)))
        labels = [f"{self.where}, cut {cut.get('cut_id', at)}" for at, cut in enumerate(entries)]
        pairs = list(zip(entries, labels, strict=True))
        rows = [self._coefficients(cut, label) for cut, label in pairs]
        return StageCuts(
            intercepts=np.array([_require_item(cut, "intercept", label) for cut, label in pairs], np.float64) / scale,
            coefficients=np.array(rows, np.float64).reshape(len(entries), len(self.state_names)) / scale,
            iteration=np.array([_require_item(cut, "iteration", label) for cut, label in pairs], np.int32),
            forward_pass=np.array([_require_item(cut, "forward_pass_index", label) for cut, label in pairs], np.int32),
            is_active=np.array([bool(cut.get("is_active", True)) for cut in entries], np.uint8),
        )

    def _coefficients(self, cut: Plain, where: str) -> list[float]:
        values, width = list(_require_item(cut, "coefficients", where)), int(self.given["state_dimension"])
        if len(values) != width:
            raise ValidationError(f"{where}: coefficients has {len(values)} entries, expected state_dimension={width}")
        return values + self._of_lags(cut.get("inflow_lag_coefficients") or {}, where)

    def _of_lags(self, given: Mapping[int, Sequence[float]], where: str) -> list[float]:
        """Return coefficients of inflow lags in the order of the state; 0 if none is given."""
        plants = entity_ids(self.state_names, STORAGE)
        for plant, values in given.items():
            if plant not in plants or len(values) > self.lag_depth:
                depth = f"inflow_lag_depth={self.lag_depth}"
                message = f"{where}: inflow_lag_coefficients of hydro {plant} do not fit into a state of {depth}"
                raise ValidationError(message)
        padded = {plant: [*given.get(plant, ()), *[0.0] * self.lag_depth] for plant in plants}
        return [float(padded[plant][lag]) for lag in range(self.lag_depth) for plant in plants]

    def end_date(self) -> str:
        """Return the day on which the cuts price the state; empty when it is not known."""
        return _day(self.given.get("priced_state_date", NO_DATE))


def _state_name(entity: Plain, where: str) -> str:
    kind, id_ = _require_item(entity, "entity_type", where), _require_item(entity, "entity_id", where)
    storage, lag = STATE_KINDS.index(STORAGE), STATE_KINDS.index(INFLOW_LAG)
    if kind == storage:
        return str(StateName(STORAGE, id_))
    if kind == lag:
        return str(StateName(INFLOW_LAG, id_, _require_item(entity, "subindex", where)))
    valid_names = f"storage ({storage}) and lagged inflows ({lag})"
    raise ValidationError(f"{where}: entity_type is {kind}; a state here has {valid_names}")


def _metadata(stages: Sequence[_Stage], metadata: Plain, scale: float) -> PolicyMetadata:
    producer = _require_item(metadata, "producer", "metadata")
    names = stages[0].state_names
    ends = tuple(metadata.get("stage_end_dates") or (stage.end_date() for stage in stages))
    # Stages follow one another; before the first one its beginning is unknown.
    starts = tuple(metadata.get("stage_start_dates") or ("", *ends[:-1]))
    for name, days in (("stage_start_dates", starts), ("stage_end_dates", ends)):
        if len(days) != len(stages):
            raise ValidationError(f"metadata.{name} has {len(days)} dates for {len(stages)} stages")
    return PolicyMetadata(
        state_names=names,
        stage_ids=tuple(int(_require_item(stage.given, "stage_id", stage.where)) for stage in stages),
        stage_start_dates=starts,
        stage_end_dates=ends,
        entity_ids={"hydros": entity_ids(names, STORAGE)},
        iterations=int(_require_item(producer, "completed_iterations", "metadata.producer")),
        seeds={"tree_seed": int(producer.get("rng_seed") or 0)},
        cost_scale=scale,
        facts={"lower_bound": producer.get("final_lower_bound"), "upper_bound": producer.get("best_upper_bound")},
    )


def _cost_scale(stage_cuts: Sequence[Plain], metadata: Plain) -> float:
    """Return the $ of one unit of the stored cuts, the same in all stages."""
    values = [stage.get("cost_scale_factor") for stage in stage_cuts]
    values.append(metadata.get("producer", {}).get("cost_scale_factor"))
    scales = {float(value) for value in values if value is not None}
    if len(scales) > 1:
        raise ValidationError(f"cost_scale_factor differs by stage: {sorted(scales)}; a policy has one")
    scale = scales.pop() if scales else 1.0
    if not scale > 0.0:
        raise ValidationError(f"cost_scale_factor is {scale}; a number above 0 is needed")
    return scale


def _day(number: int) -> str:
    try:
        return iso_date(number)
    except ValueError as error:
        raise ValidationError(f"priced_state_date: {error}") from error


def _require_item(mapping: Plain, name: str, where: str) -> Any:
    if name not in mapping:
        raise ValidationError(f"{where} has no `{name}`")
    return mapping[name]


# Default seasons: policies here do not store them.
NO_SEASONS = {"cycle_code": 255, "n_seasons": 0, "hydro_orders": []}


def policy_dictionary(folder: Path) -> dict[str, Any]:
    """Return `metadata` and `stage_cuts`; cuts are in $, in whatever unit they are stored.

    Facts of the run (versions, limits, bounds) are included when the folder is in its output directory.
    """
    file = find_policy_file(folder)
    data = read_policy(file)
    return {"metadata": _cut_metadata(data, file), "stage_cuts": _stage_cuts(data), "stage_bases": []}


def _cut_metadata(data: PolicyData, file: Path) -> dict[str, Any]:
    metadata, run = data.metadata, stored_study(file.parent.parent)
    ids = metadata.stage_ids
    return {
        "format_version": VERSION,
        "software": "cobre",
        "software_version": run.get("versions", {}).get("cobre"),
        "created_at": instant(file.stat().st_mtime),
        "num_stages": len(ids),
        "state_names": list(metadata.state_names),
        "stage_start_dates": list(metadata.stage_start_dates),
        "stage_end_dates": list(metadata.stage_end_dates),
        "graph_manifest": {
            "n_pools": len(ids),
            "nodes": [{"id": id_, "stage_id": id_, "pool_id": index} for index, id_ in enumerate(ids)],
            "edges": [
                {"source_id": source, "target_id": target, "probability": 1.0} for source, target in pairwise(ids)
            ],
        },
        "season_manifest": NO_SEASONS,
        "producer": _producer(data, run.get("config", {}), file),
    }


def _producer(data: PolicyData, config: dict[str, Any], file: Path) -> dict[str, Any]:
    metadata = data.metadata
    loaded = [from_elsewhere(stage) for stage in data.stages]
    return {
        "completed_iterations": metadata.iterations,
        "final_lower_bound": metadata.facts.get("lower_bound"),
        "best_upper_bound": metadata.facts.get("upper_bound"),
        "max_iterations": iteration_limit(config),
        "forward_passes": _forward_passes(data),
        "warm_start_cuts": max(loaded, default=0),
        "warm_start_counts": loaded,
        "cost_scale_factor": metadata.cost_scale,
        "rng_seed": metadata.seeds.get("tree_seed"),
        "total_visited_states": 0,
        "training_block_mode": None,
        "training_block_mode_per_stage": [],
        "lower_bound_history": _bounds(file.parent.parent),
    }


def _forward_passes(data: PolicyData) -> int:
    return max((int(stage.forward_pass.max(initial=-1)) for stage in data.stages), default=-1) + 1


def from_elsewhere(stage: StageCuts) -> int:
    """Count the cuts that existed before the first iteration."""
    return int(np.count_nonzero(stage.iteration == 0))


def _bounds(run: Path) -> list[float]:
    """Return lower bounds by iteration; empty if the run is missing. Runs of cobre-python have no manifest."""
    file = run / TRAINING / CONVERGENCE_FILE
    if not file.exists():
        return []
    is_checked = (run / TRAINING / MANIFEST_FILE).exists()
    table = read_results(run / TRAINING, [CONVERGENCE])[CONVERGENCE] if is_checked else StoredRows(file).whole()
    bounds: list[float] = table["lower_bound"].to_pylist()
    return bounds


def _stage_cuts(data: PolicyData) -> list[dict[str, Any]]:
    metadata, passes = data.metadata, _forward_passes(data)
    return [
        {
            "stage_id": metadata.stage_ids[index],
            "graph_stage_id": metadata.stage_ids[index],
            "node_id": metadata.stage_ids[index],
            "state_dimension": cuts.coefficients.shape[1],
            "capacity": len(cuts.intercepts),
            "warm_start_count": from_elsewhere(cuts),
            "populated_count": len(cuts.intercepts),
            "cost_scale_factor": metadata.cost_scale,
            "priced_state_date": number_of_day(metadata.stage_end_dates[index]),
            "entity_manifest": entity_manifest(metadata, index),
            "cuts": _cuts(cuts, metadata.cost_scale, passes),
        }
        for index, cuts in enumerate(data.stages)
    ]


def _cuts(stage: StageCuts, cost_scale: float, forward_passes: int) -> list[dict[str, Any]]:
    intercepts = (stage.intercepts * cost_scale).tolist()
    coefficients = (stage.coefficients * cost_scale).tolist()
    iterations, passes = stage.iteration.tolist(), stage.forward_pass.tolist()
    return [
        {
            "cut_id": iterations[slot] * forward_passes + passes[slot],
            "slot_index": slot,
            "iteration": iterations[slot],
            "forward_pass_index": passes[slot],
            "intercept": intercept,
            "coefficients": row,
            "is_active": bool(stage.is_active[slot]),
        }
        for slot, (intercept, row) in enumerate(zip(intercepts, coefficients, strict=True))
    ]


def entity_manifest(metadata: PolicyMetadata, stage: int) -> list[dict[str, Any]]:
    """Describe the entries of the state that leaves a stage, given by its position."""
    return [_entity(name, stage, metadata) for name in metadata.state_names]


def _entity(state_name: str, stage: int, metadata: PolicyMetadata) -> dict[str, Any]:
    name, read, start, end = StateName.parse(state_name), NO_DATE, NO_DATE, NO_DATE
    number = name.distance
    if name.kind == INFLOW_LAG and stage + 1 >= number:
        read = number_of_day(metadata.stage_start_dates[stage + 1 - number])
    elif name.kind in (COMMITMENT, IN_TRANSIT) and stage + number < len(metadata.stage_ids):
        start = number_of_day(metadata.stage_start_dates[stage + number])
        end = number_of_day(metadata.stage_end_dates[stage + number])
    return {
        "entity_type": STATE_KINDS.index(name.kind),
        "entity_id": name.entity_id,
        "subindex": number,
        "was_active": True,
        "reference_date": read,
        "interval_start": start,
        "interval_end": end,
    }


def number_of_day(day: str) -> int:
    """Return a date as a number: 20300131 for `2030-01-31`."""
    return int(date.fromisoformat(day).strftime("%Y%m%d")) if day else NO_DATE
