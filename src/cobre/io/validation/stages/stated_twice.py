"""Facts that a case states twice: hours and dates, seasons and dates, block factors and means, capacities and bounds.

Converters of official decks round, and studies of representative hours leave days out on purpose: a difference is a
warning. What no calendar allows is an error.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY
from cobre.core.case import Case, Table
from cobre.core.temporal import PreStudyStage, Season, SeasonDefinitions, Stage
from cobre.io.input_files.stages_file import FILE, LOAD_FILE, POST_STUDY_FILE, SOURCE_FILE
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.layer_findings import Findings, Rule, with_ids
from cobre.wording import counted

Dated = Stage | PreStudyStage

AVERAGE_MONTH_HOURS: Final = 730.0

"""A twelfth of a year: published cases have it in every month, also in one of 28 days (672 hours)."""

DAYS_OF_MONTHS: Final = (28, 31)

MAX_HOURS_APART: Final = 0.01

"""Share by which hours may differ from the calendar without a warning: a change of the clock in a week is 0.006."""

MAX_HOURS_RATIO: Final = 2.0

"""Hours beyond this multiple of the calendar's are an error: no rounding explains them."""

MAX_DAYS_APART: Final = 7

"""Days between a stage and its season without a warning: in weekly decks a month begins with the week of its 1st."""

MAX_FACTOR_APART: Final = 0.05

"""Distance from 1 of the mean of block factors without a warning; a published case has 0.019."""

MAX_BOUND_RATIO: Final = 10.0

"""A bound above this multiple of the declared capacity gives a warning; official decks go up to 5.3."""


def hours_of_the_calendar(case: Case, findings: Findings) -> None:
    """The hours of the blocks of a stage sum to the hours from its start to its end."""
    differing: list[Stage] = []
    for stage in case.horizon.stages:
        if _has_too_many(stage, stage.hours):
            message = f"the hours of the blocks sum to {stage.hours:g}, but {_period(stage)}"
            findings.error(FILE, f"stage {stage.id}", "blocks.hours", message, "hours that sum to those of the dates")
        elif not _is_near(stage, stage.hours):
            differing.append(stage)
    if differing:
        message = (
            f"the hours of the blocks sum to {differing[0].hours:g}, but {_period(differing[0])}: energy, water and "
            "costs count for the hours of the blocks"
        )
        findings.warn(FILE, with_ids("stage", [stage.id for stage in differing]), "blocks.hours", message)


def post_study_stages_follow(case: Case, findings: Findings) -> None:
    """A stage after the study lasts until the next one begins."""
    for index, (before, after) in enumerate(pairwise(case.post_study.stages)):
        days = (after.start_date - before.end_date).days
        if abs(days) > 1:  # hours need not be whole days
            message = f"is {before.duration_hours:g}: it ends on {before.end_date}, but the next one begins on "
            where = f"stage {index}"
            findings.warn(POST_STUDY_FILE, where, "duration_hours", f"{message}{after.start_date}")


def _calendar_hours(stage: Dated) -> float:
    """Return the hours of the dates; 0 where they are wrong, which is reported by the rule on dates."""
    return max(0.0, HOURS_PER_DAY * (stage.end_date - stage.start_date).days)


def _has_too_many(stage: Dated, hours: float) -> bool:
    calendar = _calendar_hours(stage)
    return calendar > 0.0 and hours > MAX_HOURS_RATIO * calendar


def _is_near(stage: Dated, hours: float) -> bool:
    calendar, (shortest, longest) = _calendar_hours(stage), DAYS_OF_MONTHS
    is_month = shortest <= calendar / HOURS_PER_DAY <= longest
    is_average = is_month and abs(hours - AVERAGE_MONTH_HOURS) < 1.0
    return calendar == 0.0 or is_average or abs(hours - calendar) <= MAX_HOURS_APART * calendar


def _period(stage: Dated) -> str:
    return f"{stage.start_date} to {stage.end_date} has {_calendar_hours(stage):g}"


def seasons_of_the_dates(case: Case, findings: Findings) -> None:
    """The season of a stage is one of its days, or near them. Weeks are not compared: they begin on any day."""
    definitions = case.horizon.season_definitions
    if definitions is None or definitions.cycle_type == "weekly":
        return
    seasons = {season.id: season for season in definitions.seasons}
    stages: list[Dated] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in stages:
        season = None if stage.season_id is None else seasons.get(stage.season_id)
        if season is None or stage.end_date <= stage.start_date:
            continue
        spans = list(_spans(season, definitions, stage.start_date.year))
        distance = min((_distance(stage, begin, end) for begin, end in spans), default=0)
        if distance > MAX_DAYS_APART:
            message = (
                f"is {stage.season_id} ({season.label}), but {stage.start_date} to {stage.end_date} is {distance} days "
                "away from it: the stage has the inflow model of another time of the year"
            )
            findings.warn(FILE, f"stage {stage.id}", "season_id", message)


def _spans(season: Season, definitions: SeasonDefinitions, year: int) -> Iterator[tuple[date, date]]:
    """Return first days of a season and first days after it, in the years around `year`."""
    if definitions.cycle_type == "monthly":
        month_end, day_end = season.month_start, None
    else:
        month_end, day_end = season.month_end or season.month_start, season.day_end
    for first in (year - 1, year, year + 1):
        wraps = (month_end, day_end or 31) < (season.month_start, season.day_start or 1)
        try:
            begin = date(first, season.month_start, season.day_start or 1)
            last_year = first + (1 if wraps else 0)
            if day_end is None:
                end = date(last_year + month_end // 12, month_end % 12 + 1, 1)
            else:
                end = date(last_year, month_end, day_end) + timedelta(days=1)
        except ValueError:  # 29 February, or a date that another rule reports
            continue
        yield begin, end


def _distance(stage: Dated, begin: date, end: date) -> int:
    """Return the days between a stage and a span; 0 if they have a day in common."""
    if stage.start_date < end and begin < stage.end_date:
        return 0
    return (begin - stage.end_date).days + 1 if begin >= stage.end_date else (stage.start_date - end).days + 1


def means_of_load_factors(case: Case, findings: Findings) -> None:
    """Factors of a bus's load in the blocks of a stage have the mean 1: the table has the stage's mean load."""
    hours = {stage.id: np.array([block.hours for block in stage.blocks]) for stage in case.horizon.stages}
    worst: dict[int, tuple[float, int]] = {}
    for (bus, stage_id), factors in case.scenarios.load_factors.items():
        of_stage = hours.get(stage_id)
        if of_stage is None or len(of_stage) != len(factors) or of_stage.sum() <= 0.0:
            continue
        mean = float(of_stage @ np.array(factors) / of_stage.sum())
        if abs(mean - 1.0) > max(MAX_FACTOR_APART, abs(worst.get(bus, (1.0, 0))[0] - 1.0)):
            worst[bus] = (mean, stage_id)
    for bus, (mean, stage_id) in worst.items():
        message = f"the mean over the hours of the blocks is {mean:.3g}: the load is that multiple of its mean"
        findings.warn(LOAD_FILE, f"bus {bus}, stage {stage_id}", "block_factors", message)


def bounds_near_capacities(case: Case, findings: Findings) -> None:
    """Bounds by stage are not many times what the entity declares."""
    system, overrides = case.system, case.overrides
    thermals = {plant.id: plant.generation.max_mw for plant in system.thermals}
    turbined = {plant.id: plant.generation.max_turbined_m3s for plant in system.hydros}
    power = {plant.id: plant.generation.max_generation_mw for plant in system.hydros}
    stored = {plant.id: plant.reservoir.max_storage_hm3 for plant in system.hydros}
    direct = {line.id: line.capacity.direct_mw for line in system.lines}
    reverse = {line.id: line.capacity.reverse_mw for line in system.lines}
    compared: Sequence[tuple[str, Table | None, str, str, dict[int, Any]]] = (
        ("thermal", overrides.thermal_bounds, "thermal_bounds", "max_generation_mw", thermals),
        ("hydro", overrides.hydro_bounds, "hydro_bounds", "max_turbined_m3s", turbined),
        ("hydro", overrides.hydro_bounds, "hydro_bounds", "max_generation_mw", power),
        ("hydro", overrides.hydro_bounds, "hydro_bounds", "max_storage_hm3", stored),
        ("line", overrides.line_bounds, "line_bounds", "direct_mw", direct),
        ("line", overrides.line_bounds, "line_bounds", "reverse_mw", reverse),
    )
    for kind, table, name, column, declared in compared:
        if table is None:
            continue
        ids, bounds = table[f"{kind}_id"], table[column]
        known = np.array([declared.get(id_) or np.nan for id_ in ids.tolist()], np.float64)
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(bounds > MAX_BOUND_RATIO * known)
        for id_ in np.unique(ids[rows]).tolist():
            row = rows[ids[rows] == id_][0]
            message = f"is {bounds[row]:g}, and {kind} {id_} declares {known[row]:g}: the bound of the stage is used"
            where = f"{kind} {id_}, stage {table['stage_id'][row]}"
            findings.warn(OVERRIDE_TABLES[name].file, where, column, message)


RULES: tuple[Rule, ...] = (
    hours_of_the_calendar,
    post_study_stages_follow,
    seasons_of_the_dates,
    means_of_load_factors,
    bounds_near_capacities,
)


# Stages: blocks, openings, and numbers per block.


MIN_STAGES = 2


def at_least_two_stages(case: Case, findings: Findings) -> None:
    """A study needs at least two stages: with one there is no future cost to approximate."""
    count = len(case.horizon.stages)
    if count < MIN_STAGES:
        findings.error(FILE, "", "stages", f"there are {count}", f"at least {MIN_STAGES}")


def blocks_count_from_zero(case: Case, findings: Findings) -> None:
    """Blocks are numbered 0, 1, 2, ... and have hours above 0."""
    for stage in case.horizon.stages:
        found = [block.id for block in stage.blocks]
        if not found:
            findings.error(FILE, f"stage {stage.id}", "blocks", "there is none", "at least one block")
        elif found != list(range(len(found))):
            message = f"their ids are {', '.join(str(id_) for id_ in found)}"
            findings.error(FILE, f"stage {stage.id}", "blocks", message, "0, 1, 2, ... without a gap")
        _check_hours(stage, findings)


def _check_hours(stage: Stage, findings: Findings) -> None:
    for block in stage.blocks:
        if block.hours <= 0:
            field = f"blocks (id {block.id}).hours"
            findings.error(FILE, f"stage {stage.id}", field, f"is {block.hours:g}", "a number of hours above 0")


def stages_have_openings(case: Case, findings: Findings) -> None:
    """Every stage has at least one opening."""
    has_nodes = bool(case.horizon.policy_graph.nodes) and case.config.training.is_enumerated
    for stage in case.horizon.stages:
        if stage.num_openings is None and has_nodes:
            continue  # nodes have their own realisations
        if not stage.num_openings or stage.num_openings < 1:
            found = "is missing" if stage.num_openings is None else f"is {stage.num_openings}"
            findings.error(FILE, f"stage {stage.id}", "num_openings", found, "at least 1")


def ids_of_stages(case: Case, findings: Findings) -> None:
    """Ids of the study's stages have no gap and usually start at 0; ids of pre-study stages are negative."""
    found = [stage.id for stage in case.horizon.stages]
    if found and (found[0] < 0 or found != list(range(found[0], found[0] + len(found)))):
        shown = ", ".join(str(id_) for id_ in found[:8])
        findings.error(FILE, "", "stages.id", f"the ids are {shown}", "0, 1, 2, ... without a gap")
    for stage in case.horizon.pre_study_stages:
        if stage.id >= 0:
            findings.error(FILE, f"pre-study stage {stage.id}", "id", "is not negative", "-1, -2, ...")


def factors_for_each_block(case: Case, findings: Findings) -> None:
    """Factors are given for as many blocks as the stage has."""
    blocks = {stage.id: len(stage.blocks) for stage in case.horizon.stages}
    kinds = (
        (LOAD_FILE, "bus", case.scenarios.load_factors),
        (SOURCE_FILE, "source", case.scenarios.non_controllable_factors),
    )
    for file, word, factors in kinds:
        for (entity_id, stage_id), values in factors.items():
            if len(values) != blocks[stage_id]:
                entity = f"{word} {entity_id}, stage {stage_id}"
                message = f"there are {len(values)} factors, but the stage has {counted(blocks[stage_id], 'block')}"
                findings.error(file, entity, "block_factors", message, "one factor for each block")


DIMENSION_RULES: tuple[Rule, ...] = (
    at_least_two_stages,
    ids_of_stages,
    blocks_count_from_zero,
    stages_have_openings,
    factors_for_each_block,
)
