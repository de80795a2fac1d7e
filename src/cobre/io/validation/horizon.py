"""stages.json and what must agree with it: dates, blocks, seasons, rates, risk, factors of blocks.

Converters of official decks round, and studies of representative hours leave days out on purpose: where a case states a
fact twice, a difference is a warning. What no calendar allows is an error.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

import numpy as np

from cobre.core.arrays import HOURS_PER_DAY
from cobre.core.case import Case
from cobre.core.file_names import CONFIG_FILE, LOAD_FACTORS_FILE, POST_STUDY_FILE, SOURCE_FACTORS_FILE, STAGES_FILE
from cobre.core.temporal import PreStudyStage, Season, SeasonDefinitions, Stage
from cobre.io.findings import Findings, Layer, about, error_code, several, warning_code
from cobre.io.validation.rules import (
    END_NOT_AFTER_START,
    ENDS_AFTER_STUDY_START,
    NOT_POSITIVE,
    OUT_OF_RANGE,
    Rule,
    require_not_negative,
    rule,
)
from cobre.text import counted

Dated = Stage | PreStudyStage
MIN_STAGES: Final = 2
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

# Blocks, openings and ids of stages.

TOO_FEW_STAGES = error_code("too-few-stages", Layer.DIMENSIONS, "there are {value}", expected=f"at least {MIN_STAGES}")
STAGE_IDS = error_code("stage-ids", Layer.DIMENSIONS, "the ids are {value}", expected="0, 1, 2, ... without a gap")
PRE_STUDY_ID = error_code("pre-study-stage-id", Layer.DIMENSIONS, "is not negative", expected="-1, -2, ...")
NO_BLOCKS = error_code("no-blocks", Layer.DIMENSIONS, "there is none", expected="at least one block")
BLOCK_IDS = error_code("block-ids", Layer.DIMENSIONS, "their ids are {value}", expected="0, 1, 2, ... without a gap")
BLOCK_HOURS = error_code("block-hours", Layer.DIMENSIONS, "is {value:g}", expected="a number of hours above 0")
NO_OPENINGS = error_code("no-openings", Layer.DIMENSIONS, "is {value}", expected="at least 1")
OPENINGS_MISSING = error_code("openings-missing", Layer.DIMENSIONS, "is missing", expected="at least 1")

BLOCK_FACTOR_COUNT = error_code(
    "block-factor-count",
    Layer.DIMENSIONS,
    "there are {value} factors, but the stage has {blocks}",
    expected="one factor for each block",
)


@rule(STAGES_FILE)
def at_least_two_stages(case: Case, findings: Findings) -> None:
    """Require at least two stages: with one there is no future cost to approximate."""
    count = len(case.horizon.stages)
    if count < MIN_STAGES:
        findings.add(TOO_FEW_STAGES, STAGES_FILE, (), "stages", value=count)


@rule(STAGES_FILE)
def ids_of_stages(case: Case, findings: Findings) -> None:
    """Require ids of stages without a gap, usually from 0, and negative ids of pre-study stages."""
    stage_ids = [stage.id for stage in case.horizon.stages]
    if stage_ids[0] < 0 or stage_ids != list(range(stage_ids[0], stage_ids[0] + len(stage_ids))):
        findings.add(STAGE_IDS, STAGES_FILE, (), "stages.id", value=", ".join(str(id_) for id_ in stage_ids[:8]))
    for stage in case.horizon.pre_study_stages:
        if stage.id >= 0:
            findings.add(PRE_STUDY_ID, STAGES_FILE, about("pre-study stage", stage.id), "id", value=stage.id)


@rule(STAGES_FILE)
def blocks_count_from_zero(case: Case, findings: Findings) -> None:
    """Require blocks with ids 0, 1, 2, ... and hours above 0."""
    for stage in case.horizon.stages:
        subject, block_ids = about("stage", stage.id), [block.id for block in stage.blocks]
        if not block_ids:
            findings.add(NO_BLOCKS, STAGES_FILE, subject, "blocks")
        elif block_ids != list(range(len(block_ids))):
            findings.add(BLOCK_IDS, STAGES_FILE, subject, "blocks", value=", ".join(map(str, block_ids)))
        for block in stage.blocks:
            if block.hours <= 0:
                findings.add(BLOCK_HOURS, STAGES_FILE, subject, f"blocks (id {block.id}).hours", value=block.hours)


@rule(STAGES_FILE, CONFIG_FILE)
def stages_have_openings(case: Case, findings: Findings) -> None:
    """Require at least one opening in every stage, except where nodes have their own realisations."""
    has_nodes = bool(case.horizon.policy_graph.nodes) and case.config.training.is_enumerated
    for stage in case.horizon.stages:
        subject = about("stage", stage.id)
        if stage.num_openings is None and not has_nodes:
            findings.add(OPENINGS_MISSING, STAGES_FILE, subject, "num_openings")
        elif stage.num_openings is not None and stage.num_openings < 1:
            findings.add(NO_OPENINGS, STAGES_FILE, subject, "num_openings", value=stage.num_openings)


@rule(STAGES_FILE, error_free=(LOAD_FACTORS_FILE, SOURCE_FACTORS_FILE))
def factors_for_each_block(case: Case, findings: Findings) -> None:
    """Require factors for as many blocks as the stage has."""
    blocks = {stage.id: len(stage.blocks) for stage in case.horizon.stages}
    kinds = (
        (LOAD_FACTORS_FILE, "bus", case.scenarios.load_factors),
        (SOURCE_FACTORS_FILE, "source", case.scenarios.non_controllable_factors),
    )
    for file, word, factors in kinds:
        for (entity_id, stage_id), values in factors.items():
            if len(values) != blocks[stage_id]:
                subject = about(word, entity_id, "stage", stage_id)
                facts = {"value": len(values), "blocks": counted(blocks[stage_id], "block")}
                findings.add(BLOCK_FACTOR_COUNT, file, subject, "block_factors", **facts)


DIMENSION_RULES: tuple[Rule, ...] = (
    ids_of_stages,
    blocks_count_from_zero,
    stages_have_openings,
    factors_for_each_block,
)

# Dates, rates and risk.

STAGES_OUT_OF_ORDER = error_code(
    "stages-out-of-order",
    Layer.MEANING,
    "is {value}, but stage {before} ends on {end}",
    expected="stages in order of time",
)

STAGES_OVERLAP = warning_code(
    "stages-overlap",
    Layer.MEANING,
    "is {value}, but stage {before} ends on {end}: days that both stages have count twice",
)

GAP_BETWEEN_STAGES = warning_code(
    "gap-between-stages",
    Layer.MEANING,
    "is {value}, but stage {before} ends on {end}: days between them are not studied",
)

SOBOL_SET_SIZE = warning_code(
    "sobol-set-size",
    Layer.MEANING,
    "is {value}: Sobol points are balanced only when their number is a power of 2",
)


@rule(STAGES_FILE)
def dates_in_order(case: Case, findings: Findings) -> None:
    """Require stages that end after they start and follow one another."""
    dated: list[Dated] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in dated:
        if stage.end_date <= stage.start_date:
            facts = {"value": stage.end_date, "start": stage.start_date, "period": "stage"}
            findings.add(END_NOT_AFTER_START, STAGES_FILE, about("stage", stage.id), "end_date", **facts)
    for before, after in pairwise(case.horizon.stages):
        subject, facts = about("stage", after.id), {"before": before.id, "end": before.end_date}
        if after.end_date <= before.end_date:
            findings.add(STAGES_OUT_OF_ORDER, STAGES_FILE, subject, "end_date", value=after.end_date, **facts)
        elif after.start_date != before.end_date:
            code = STAGES_OVERLAP if after.start_date < before.end_date else GAP_BETWEEN_STAGES
            findings.add(code, STAGES_FILE, subject, "start_date", value=after.start_date, **facts)


@rule(STAGES_FILE)
def pre_study_stages_before_the_study(case: Case, findings: Findings) -> None:
    """Require pre-study stages that end before the study starts."""
    start = case.horizon.stages[0].start_date
    for stage in case.horizon.pre_study_stages:
        if stage.end_date > start:
            subject = about("pre-study stage", stage.id)
            findings.add(ENDS_AFTER_STUDY_START, STAGES_FILE, subject, "end_date", value=stage.end_date, start=start)


@rule(STAGES_FILE)
def discount_rates(case: Case, findings: Findings) -> None:
    """Refuse negative annual discount rates."""
    graph = case.horizon.policy_graph
    field = "annual_discount_rate_override"
    require_not_negative(graph.annual_discount_rate, STAGES_FILE, (), "policy_graph.annual_discount_rate", findings)
    for edge in graph.transitions:
        if edge.annual_discount_rate_override is not None:
            subject = about("transition", f"{edge.source_id} -> {edge.target_id}")
            require_not_negative(edge.annual_discount_rate_override, STAGES_FILE, subject, field, findings)
    for stage in case.horizon.stages:
        if stage.annual_discount_rate_override is not None:
            rate = stage.annual_discount_rate_override
            require_not_negative(rate, STAGES_FILE, about("stage", stage.id), field, findings)


@rule(STAGES_FILE)
def risk_measures(case: Case, findings: Findings) -> None:
    """Require CVaR with alpha above 0 and at most 1, and lambda from 0 to 1."""
    for stage in case.horizon.stages:
        subject = about("stage", stage.id)
        if stage.risk is not None and not 0 < stage.risk.alpha <= 1:
            facts = {"value": stage.risk.alpha, "range": "above 0 and at most 1"}
            findings.add(OUT_OF_RANGE, STAGES_FILE, subject, "risk_measure.cvar.alpha", **facts)
        if stage.risk is not None and not 0 <= stage.risk.lambda_ <= 1:
            facts = {"value": stage.risk.lambda_, "range": "between 0 and 1"}
            findings.add(OUT_OF_RANGE, STAGES_FILE, subject, "risk_measure.cvar.lambda", **facts)


@rule(STAGES_FILE)
def sizes_of_sobol_sets(case: Case, findings: Findings) -> None:
    """Warn of Sobol sets whose size is not a power of 2."""
    for stage in case.horizon.stages:
        count = stage.num_openings or 0
        if stage.sampling_method == "qmc_sobol" and count & (count - 1):
            findings.add(SOBOL_SET_SIZE, STAGES_FILE, about("stage", stage.id), "num_openings", value=count)


# Hours, seasons and factors compared with the calendar.

TOO_MANY_HOURS = error_code(
    "hours-beyond-the-dates",
    Layer.MEANING,
    "the hours of the blocks sum to {value:g}, but {start} to {end} has {calendar:g}",
    expected="hours that sum to those of the dates",
)

HOURS_DIFFER = warning_code(
    "hours-differ-from-the-dates",
    Layer.MEANING,
    "the hours of the blocks sum to {value:g}, but {start} to {end} has {calendar:g}: energy, water and costs count "
    "for the hours of the blocks",
)

POST_STUDY_GAP = warning_code(
    "post-study-stages-apart",
    Layer.MEANING,
    "is {value:g}: it ends on {end}, but the next one begins on {next}",
)

SEASON_OF_OTHER_DATES = warning_code(
    "season-of-other-dates",
    Layer.MEANING,
    "is {value} ({label}), but {start} to {end} is {days} days away from it: the stage has the inflow model of another "
    "time of the year",
)

MEAN_OF_LOAD_FACTORS = warning_code(
    "mean-of-load-factors",
    Layer.MEANING,
    "the mean over the hours of the blocks is {value:.3g}: the load is that multiple of its mean",
)


@rule(STAGES_FILE)
def hours_of_the_calendar(case: Case, findings: Findings) -> None:
    """Compare the hours of the blocks of a stage with the hours from its start to its end."""
    differing: list[Stage] = []
    for stage in case.horizon.stages:
        if _has_too_many(stage, stage.hours):
            findings.add(TOO_MANY_HOURS, STAGES_FILE, about("stage", stage.id), "blocks.hours", **_hours(stage))
        elif not _is_near(stage, stage.hours):
            differing.append(stage)
    if differing:
        subject = several("stage", (stage.id for stage in differing))
        findings.add(HOURS_DIFFER, STAGES_FILE, subject, "blocks.hours", **_hours(differing[0]))


def _hours(stage: Stage) -> dict[str, float | date]:
    return {
        "value": stage.hours,
        "start": stage.start_date,
        "end": stage.end_date,
        "calendar": _calendar_hours(stage),
    }


def _calendar_hours(stage: Dated) -> float:
    """Return the hours of the dates; 0 if they are wrong, which is reported by the rule on dates."""
    return max(0.0, HOURS_PER_DAY * (stage.end_date - stage.start_date).days)


def _has_too_many(stage: Dated, hours: float) -> bool:
    calendar = _calendar_hours(stage)
    return calendar > 0.0 and hours > MAX_HOURS_RATIO * calendar


def _is_near(stage: Dated, hours: float) -> bool:
    calendar, (shortest, longest) = _calendar_hours(stage), DAYS_OF_MONTHS
    is_month = shortest <= calendar / HOURS_PER_DAY <= longest
    is_average = is_month and abs(hours - AVERAGE_MONTH_HOURS) < 1.0
    return calendar == 0.0 or is_average or abs(hours - calendar) <= MAX_HOURS_APART * calendar


@rule(POST_STUDY_FILE)
def post_study_stages_follow(case: Case, findings: Findings) -> None:
    """Warn of a stage after the study that does not last until the next one begins."""
    for index, (before, after) in enumerate(pairwise(case.post_study.stages)):
        if abs((after.start_date - before.end_date).days) > 1:  # hours need not be whole days
            facts = {"value": before.duration_hours, "end": before.end_date, "next": after.start_date}
            findings.add(POST_STUDY_GAP, POST_STUDY_FILE, about("stage", index), "duration_hours", **facts)


@rule(STAGES_FILE)
def seasons_of_the_dates(case: Case, findings: Findings) -> None:
    """Warn of a stage far from the days of its season. Weeks are not compared: they begin on any day."""
    definitions = case.horizon.season_definitions
    if definitions is None or definitions.cycle_type == "weekly":
        return
    seasons = {season.id: season for season in definitions.seasons}
    dated: list[Dated] = [*case.horizon.pre_study_stages, *case.horizon.stages]
    for stage in dated:
        season = None if stage.season_id is None else seasons.get(stage.season_id)
        if season is None or stage.end_date <= stage.start_date:
            continue
        spans = _spans(season, definitions, stage.start_date.year)
        distance = min((_distance(stage, begin, end) for begin, end in spans), default=0)
        if distance > MAX_DAYS_APART:
            facts = {"label": season.label, "start": stage.start_date, "end": stage.end_date, "days": distance}
            subject = about("stage", stage.id)
            findings.add(SEASON_OF_OTHER_DATES, STAGES_FILE, subject, "season_id", value=stage.season_id, **facts)


def _spans(season: Season, definitions: SeasonDefinitions, year: int) -> Iterator[tuple[date, date]]:
    """Yield the first days of a season and the first days after it, in the years around `year`."""
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
        except ValueError:  # a date that this year does not have, such as 29 February
            continue
        yield begin, end


def _distance(stage: Dated, begin: date, end: date) -> int:
    """Return the days between a stage and a span; 0 if they have a day in common."""
    if stage.start_date < end and begin < stage.end_date:
        return 0
    return (begin - stage.end_date).days + 1 if begin >= stage.end_date else (stage.start_date - end).days + 1


@rule(STAGES_FILE, LOAD_FACTORS_FILE)
def means_of_load_factors(case: Case, findings: Findings) -> None:
    """Warn of load factors whose mean over a stage is not 1: the table has the stage's mean load."""
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
        subject = about("bus", bus, "stage", stage_id)
        findings.add(MEAN_OF_LOAD_FACTORS, LOAD_FACTORS_FILE, subject, "block_factors", value=mean)


@rule(iterated=(LOAD_FACTORS_FILE, SOURCE_FACTORS_FILE))
def factors_above_zero(case: Case, findings: Findings) -> None:
    """Require block factors above zero."""
    kinds = (
        (LOAD_FACTORS_FILE, "bus", case.scenarios.load_factors),
        (SOURCE_FACTORS_FILE, "source", case.scenarios.non_controllable_factors),
    )
    for file, word, factors in kinds:
        for (entity_id, stage_id), values in factors.items():
            for block, value in enumerate(values):
                if value <= 0:
                    subject = about(word, entity_id, "stage", stage_id)
                    findings.add(NOT_POSITIVE, file, subject, f"block_factors (block {block}).factor", value=value)


RULES: tuple[Rule, ...] = (
    dates_in_order,
    pre_study_stages_before_the_study,
    discount_rates,
    risk_measures,
    sizes_of_sobol_sets,
    hours_of_the_calendar,
    post_study_stages_follow,
    seasons_of_the_dates,
    means_of_load_factors,
    factors_above_zero,
)
