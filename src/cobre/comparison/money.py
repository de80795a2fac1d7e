"""Compare means: both studies are read in step, scenario by scenario, table by table."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.comparison.measures import (
    CONTROLLED_COST,
    COST,
    QUANTITIES,
    CostMeasure,
    EntityMeasure,
    Frame,
    block_hours_of,
)
from cobre.comparison.runs import ComparedRun, Match, NotComparableError, in_step, match_entities, match_stages
from cobre.core.arrays import Floats
from cobre.core.confidence import student_quantile
from cobre.records import dataclass
from cobre.runs.formatting import COST_COMPONENTS
from cobre.wording import money

# Means of two studies over common scenarios, and the confidence interval of their difference.


CONFIDENCE = 0.95


class PairedMeans:
    """Running means of arrays of both studies and of their difference; no scenario is kept.

    The variance is that of the paired differences (Welford's algorithm). It is valid for scenarios that are drawn
    independently of each other, whether or not both studies see the same inflows; with the same inflows it is much
    smaller.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.a: Floats = np.zeros(shape)
        self.b: Floats = np.zeros(shape)
        self.difference: Floats = np.zeros(shape)
        self._squares: Floats = np.zeros(shape)

    def add(self, a: Floats, b: Floats) -> None:
        """Add one scenario. Where either value is NaN, the means stay NaN."""
        self.count += 1
        self.a += (a - self.a) / self.count
        self.b += (b - self.b) / self.count
        found = b - a
        before = found - self.difference
        self.difference += before / self.count
        self._squares += before * (found - self.difference)

    @property
    def half_width(self) -> Floats:
        """Half width of the 95 % confidence interval of the difference, by Student's t; NaN for a single scenario."""
        if self.count < 2:
            return np.full(self.difference.shape, np.nan)
        error = np.sqrt(np.maximum(self._squares, 0.0) / (self.count - 1) / self.count)
        found: Floats = student_quantile(CONFIDENCE, self.count - 1) * error
        return found


def is_certain(difference: float, half_width: float) -> bool:
    """Whether the confidence interval of the difference excludes 0."""
    return math.isfinite(half_width) and abs(difference) > half_width


SAME_MEAN_TOLERANCE = 1e-9

"""Relative difference up to which two means count as equal."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantity: means by stage and the horizon (rows) x entities and the system (columns)."""

    entities: Sequence[Match]
    means: PairedMeans


@dataclass(frozen=True, slots=True)
class Money:
    """Common stages and scenarios of two studies, and every quantity over them. notes: limits of the comparison."""

    stages: Sequence[Match]
    scenarios: int
    has_same_inflows: bool | None
    quantities: Mapping[str, Compared]
    notes: tuple[str, ...]


def compare_money(a: ComparedRun, b: ComparedRun) -> Money:
    """Means of both studies over common scenarios and stages. Raises NotComparableError."""
    stages, left_out = _stages(a, b)
    frames = tuple(_frame(run, [getattr(stage, side) for stage in stages]) for run, side in ((a, "a"), (b, "b")))
    quantities = {COST: _costs(a, b, frames)}
    for table in dict.fromkeys(quantity.table for quantity in QUANTITIES.values()):
        quantities |= _entities(a, b, table, frames)
    if not left_out and (controlled := _controlled_costs(a, b, frames)) is not None:
        quantities[CONTROLLED_COST] = controlled
    ordered = {key: quantities[key] for key in (COST, CONTROLLED_COST, *QUANTITIES) if key in quantities}
    count = ordered[COST].means.count
    notes = (*left_out, *_notes(a, b, ordered[COST], is_whole=not left_out))
    return Money(stages, count, _has_same_inflows(ordered), ordered, notes)


def _stages(a: ComparedRun, b: ComparedRun) -> tuple[list[Match], list[str]]:
    ids = [_ids(run, "costs", "stage_id") for run in (a, b)]
    stages = match_stages(a, b, *ids)
    if not stages:
        spans = [run.study.stage_labels(found) for run, found in zip((a, b), ids, strict=True)]
        spans_text = " and ".join(
            f"{run.name} has {span[0]} to {span[-1]}" for run, span in zip((a, b), spans, strict=True)
        )
        raise NotComparableError(f"the two studies have no common stages: {spans_text}")
    counts = [len(found) - len(stages) for found in ids]
    listed = [f"{count} stages are in {name} only" for count, name in zip(counts, "AB", strict=True) if count]
    note = [f"{' and '.join(listed)}: totals are over the {len(stages)} stages that both have"] if listed else []
    return stages, note


def _ids(run: ComparedRun, table: str, column: str) -> list[int]:
    """Distinct ids of one scenario's rows, in order of appearance."""
    return [int(id_) for id_ in dict.fromkeys(run.first_scenario(table, [column])[column].tolist())]


def _frame(run: ComparedRun, stages: Sequence[int]) -> Frame:
    hours = block_hours_of(run)
    known = run.study.hours(stages) or [
        sum(value for (stage, _), value in hours.items() if stage == wanted) or 1.0 for wanted in stages
    ]
    return Frame(stages, np.array(known), hours)


def _costs(a: ComparedRun, b: ComparedRun, frames: Sequence[Frame]) -> Compared:
    known = [run.columns("costs") for run in (a, b)]
    components = [name for name in COST_COMPONENTS if any(name in names for names in known)]
    measures = [CostMeasure(frame, components, names) for frame, names in zip(frames, known, strict=True)]
    means = PairedMeans((len(frames[0].stages) + 1, len(components) + 1))
    for _, first, second in in_step(
        *(run.scenarios("costs", m.columns) for run, m in zip((a, b), measures, strict=True))
    ):
        means.add(measures[0].arrays(first), measures[1].arrays(second))
    if not means.count:
        raise NotComparableError("the two studies have no common scenarios: simulate scenarios with the same ids")
    return Compared([Match(0, 0, COST_COMPONENTS[name]) for name in components], means)


def _controlled_costs(a: ComparedRun, b: ComparedRun, frames: Sequence[Frame]) -> Compared | None:
    """The cost of whole scenarios without the luck of their draw, over the horizon; None where one study has none."""
    if not all(run.has("scenario_costs", ["scenario_id", "controlled_cost"]) for run in (a, b)):
        return None
    means = PairedMeans((len(frames[0].stages) + 1, 1))
    for _, first, second in in_step(*(run.scenarios("scenario_costs", ["controlled_cost"]) for run in (a, b))):
        # Of the horizon alone: stages have no cost of their own that is controlled.
        means.add(*(_last_row(means.a.shape, rows["controlled_cost"][0]) for rows in (first, second)))
    return Compared([], means) if means.count else None


def _last_row(shape: tuple[int, ...], value: float) -> Floats:
    found = np.full(shape, np.nan)
    found[-1] = value
    return found


def _entities(a: ComparedRun, b: ComparedRun, table: str, frames: Sequence[Frame]) -> dict[str, Compared]:
    keys = [
        key
        for key, quantity in QUANTITIES.items()
        if quantity.table == table and all(run.has(table, [quantity.entity, quantity.number]) for run in (a, b))
    ]
    if not keys:
        return {}
    quantity = QUANTITIES[keys[0]]
    ids = [_ids(run, table, quantity.entity) for run in (a, b)]
    entities = match_entities(a, b, quantity.kind, *ids)
    is_common = np.array([entity.present_in == "both" for entity in entities], bool)
    sides = ([entity.a for entity in entities], [entity.b for entity in entities])
    measures = [EntityMeasure(keys, frame, side, is_common) for frame, side in zip(frames, sides, strict=True)]
    means = _means(a, b, table, measures, (len(frames[0].stages) + 1, len(entities) + 1))
    return {key: Compared(entities, means[key]) for key in keys}


def _means(
    a: ComparedRun, b: ComparedRun, table: str, measures: Sequence[EntityMeasure], shape: tuple[int, int]
) -> dict[str, PairedMeans]:
    means: dict[str, PairedMeans] = {}
    readers = [run.scenarios(table, measure.columns) for run, measure in zip((a, b), measures, strict=True)]
    for _, first, second in in_step(*readers):
        values = measures[0].arrays(first), measures[1].arrays(second)
        for key in values[0]:
            means.setdefault(key, PairedMeans(shape)).add(values[0][key], values[1][key])
    return means


def _has_same_inflows(quantities: Mapping[str, Compared]) -> bool | None:
    """Whether common plants have the same inflow in every scenario and stage; None where no plant is common."""
    found = quantities.get("inflow")
    if found is None or not any(entity.present_in == "both" for entity in found.entities):
        return None
    is_common = np.array([entity.present_in == "both" for entity in found.entities], bool)
    parts: list[NDArray[np.float64]] = [found.means.difference, found.means.half_width]
    return all(not np.nan_to_num(part[:-1, :-1][:, is_common]).any() for part in parts)


def _notes(a: ComparedRun, b: ComparedRun, cost: Compared, *, is_whole: bool) -> list[str]:
    """Notes where the mean over common scenarios differs from the mean in a run's summary."""
    found = [float(means[-1, -1]) for means in (cost.means.a, cost.means.b)]
    return [
        f"the mean cost of {name} over the {cost.means.count} common scenarios is not that of all its scenarios "
        f"({money(run.mean_cost)} $)"
        for run, name, mean in zip((a, b), "AB", found, strict=True)
        if is_whole
        and run.mean_cost is not None
        and abs(mean - run.mean_cost) > SAME_MEAN_TOLERANCE * max(1.0, abs(mean))
    ]
