"""Anticipated thermal plants: leads within the study, and commitments from before it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from cobre.core.case import ABSENT_ID, Case
from cobre.core.delays import BEFORE_STUDY, Anticipation, Deliveries, PastCommitment, anticipations
from cobre.core.entities import Thermal, is_in_service
from cobre.core.file_names import (
    CONDITIONS_FILE,
    CONFIG_FILE,
    CONSTRAINTS_FILE,
    POST_STUDY_FILE,
    STAGES_FILE,
    THERMALS_FILE,
)
from cobre.core.temporal import Stage
from cobre.io.findings import (
    Findings,
    IdList,
    Layer,
    about,
    error_code,
    named,
    stages,
    warning_code,
)
from cobre.io.validation.references import constraint_subject
from cobre.io.validation.rules import END_NOT_AFTER_START, OVERRIDES, WINDOWS_OVERLAP, Rule, require_order, rule

FIELD = "past_anticipated_commitments"
LEAD_STAGES = "anticipated_config.lead_stages"
EVEN = 1.5  # months count as equal, weeks and months do not

NOT_ANTICIPATED = error_code(
    "thermal-not-anticipated",
    Layer.MEANING,
    "there is no anticipated thermal {value}",
    remedy="anticipated: {anticipated}",
)

POST_STUDY_START = error_code(
    "post-study-stage-start",
    Layer.MEANING,
    "is {value}, but the stage before it ends on {end}",
    expected="{end}",
)

POST_STUDY_INDEX = error_code(
    "post-study-stage-index",
    Layer.MEANING,
    "there are {count} stages, counted from 0",
    expected="one of them",
)

LEAD_BEYOND_STUDY = error_code(
    "lead-beyond-study",
    Layer.MEANING,
    "is {value}, and there are {count} stages to deliver in",
    expected="a lead within the study",
)

DELIVERY_WITHOUT_BOUNDS = error_code(
    "delivery-without-bounds",
    Layer.MEANING,
    "the study commits power for stage {value}, which has no bounds",
    expected="a row for it",
)

LEAD_OVER_UNEQUAL_STAGES = warning_code(
    "lead-over-unequal-stages",
    Layer.MEANING,
    "counts a stage of {days} days like one of {other_days}",
    remedy="use `lead_time_hours`, which counts hours",
)

DAYS_WITHOUT_COMMITMENT = error_code(
    "days-without-commitment",
    Layer.MEANING,
    "{value} of the {days} days from {start} to {end} have commitments made before the study",
    expected="one window for each such day; 0 MW counts as a commitment",
)

COMMITMENT_OF_THE_STUDY = error_code(
    "commitment-within-study",
    Layer.MEANING,
    "{value} days from {start} to {end} have commitments, but the study decides these itself",
    expected="windows that end where the lead time ends",
)

COMMITMENT_OUTSIDE_LIMITS = error_code(
    "commitment-outside-limits",
    Layer.MEANING,
    "is {value:g}, but the limits in stage {stage} are {least:g} to {most:g} MW",
    expected="a value within these limits",
)

BOUNDS_OF_BLOCKS = error_code(
    "anticipated-bounds-by-block",
    Layer.MEANING,
    "is given in {value}; power that is decided ahead has one limit for all blocks",
    expected="null",
)

DECISION_NOT_ANTICIPATED = error_code(
    "decision-of-other-thermal",
    Layer.MEANING,
    "thermal {value} is not an anticipated plant",
    remedy="anticipated: {anticipated}",
)

GENERATION_DECIDED_EARLIER = warning_code(
    "generation-decided-earlier",
    Layer.MEANING,
    "thermal_generation({value}) is power that was decided earlier",
    remedy="use anticipated_decision({value}) for what a stage decides",
)

DELIVERY_WITHOUT_VALUE = warning_code(
    "delivery-without-value",
    Layer.MEANING,
    "without `policy.boundary`, power delivered after the study has no value: the minimum is committed",
)


@rule(THERMALS_FILE, iterated=(CONDITIONS_FILE, POST_STUDY_FILE))
def plants_of_commitments(case: Case, findings: Findings) -> None:
    """Require past commitments and post-study bounds of anticipated plants only."""
    anticipated = {plant.id for plant in case.system.thermals if plant.anticipated_config is not None}
    for file, rows, field in (
        (CONDITIONS_FILE, case.initial_conditions.past_commitments, f"{FIELD}.thermal_id"),
        (POST_STUDY_FILE, case.post_study.thermal_bounds, "thermal_bounds.thermal_id"),
    ):
        for id_ in sorted({row.thermal_id for row in rows} - anticipated):
            findings.add(NOT_ANTICIPATED, file, (), field, value=id_, anticipated=IdList(anticipated))


@rule(STAGES_FILE, POST_STUDY_FILE)
def stages_after_the_study(case: Case, findings: Findings) -> None:
    """Require post-study stages that begin where the study ends and follow one another, and bounds of existing ones."""
    after, file = case.post_study, POST_STUDY_FILE
    ends = [case.horizon.stages[-1].end_date, *(stage.end_date for stage in after.stages)]
    for number, (stage, end) in enumerate(zip(after.stages, ends, strict=False)):
        if stage.start_date != end:
            findings.add(POST_STUDY_START, file, about("stage", number), "start_date", value=stage.start_date, end=end)
    for row in after.thermal_bounds:
        index = row.post_study_stage_index
        subject = about("thermal", row.thermal_id, "stage", index)
        if not 0 <= index < len(after.stages):
            facts = {"value": index, "count": len(after.stages)}
            findings.add(POST_STUDY_INDEX, file, subject, "post_study_stage_index", **facts)
        require_order(row.min_mw, row.max_mw, file, subject, ("min_mw", "max_mw"), findings)


@rule(STAGES_FILE, THERMALS_FILE, POST_STUDY_FILE)
def leads_within_the_study(case: Case, findings: Findings) -> None:
    """Require deliveries within the study, or in later stages that have bounds for the plant."""
    bounded = {(row.thermal_id, row.post_study_stage_index) for row in case.post_study.thermal_bounds}
    for plant, deliveries in _plants(case):
        subject = named("thermal", plant.thermal)
        lead = plant.thermal.anticipated_config.lead_stages if plant.thermal.anticipated_config else None
        if lead is not None and lead > len(deliveries.hours):
            facts = {"value": lead, "count": len(deliveries.hours)}
            findings.add(LEAD_BEYOND_STUDY, THERMALS_FILE, subject, LEAD_STAGES, **facts)
        for delivery in plant.decided:
            index = delivery - deliveries.num_stages
            if index >= 0 and (plant.thermal.id, index) not in bounded:
                findings.add(DELIVERY_WITHOUT_BOUNDS, POST_STUDY_FILE, subject, "thermal_bounds", value=index)


@rule(STAGES_FILE, THERMALS_FILE, POST_STUDY_FILE)
def leads_over_equal_stages(case: Case, findings: Findings) -> None:
    """Warn of a lead in stages where stages differ in length: it is not a fixed time."""
    for plant, deliveries in _plants(case):
        config = plant.thermal.anticipated_config
        if config is None or config.lead_stages is None:
            continue
        days = [
            (stage.end_date - stage.start_date).days
            for stage in case.horizon.stages
            if is_in_service(plant.thermal, stage.id)
        ]
        changes = [(a, b) for a, b in pairwise(days) if max(a, b) > EVEN * min(a, b)]
        if changes and len(deliveries.hours) > 1:
            facts = {"value": config.lead_stages, "days": changes[0][0], "other_days": changes[0][1]}
            findings.add(LEAD_OVER_UNEQUAL_STAGES, THERMALS_FILE, named("thermal", plant.thermal), LEAD_STAGES, **facts)


@rule(STAGES_FILE, THERMALS_FILE, POST_STUDY_FILE, CONDITIONS_FILE)
def commitments_cover_the_lead(case: Case, findings: Findings) -> None:
    """Require past commitments that follow one another and cover exactly the deliveries decided before the study."""
    for plant, deliveries in _plants(case):
        windows = _windows(case, plant)
        _check_windows(plant.thermal, windows, findings)
        for delivery in range(len(deliveries.hours)):
            is_before = plant.deciders[delivery] == BEFORE_STUDY
            _check_coverage(plant.thermal, deliveries, delivery, windows, is_before, findings)


def _check_windows(plant: Thermal, windows: Sequence[PastCommitment], findings: Findings) -> None:
    subject, file = named("thermal", plant), CONDITIONS_FILE
    for row in windows:
        if row.end_date <= row.start_date:
            facts = {"value": row.end_date, "start": row.start_date, "period": "window"}
            findings.add(END_NOT_AFTER_START, file, subject, f"{FIELD}.end_date", **facts)
    for first, second in pairwise(windows):
        if second.start_date < first.end_date:
            facts = {"value": second.start_date, "before": first.start_date}
            findings.add(WINDOWS_OVERLAP, file, subject, f"{FIELD}.start_date", **facts)


def _check_coverage(
    plant: Thermal,
    deliveries: Deliveries,
    delivery: int,
    windows: Sequence[PastCommitment],
    is_before: bool,
    findings: Findings,
) -> None:
    start, end = deliveries.starts[delivery], deliveries.ends[delivery]
    covered = sum(deliveries.overlap_days(delivery, row.start_date, row.end_date) for row in windows)
    subject, facts = named("thermal", plant), {"value": covered, "start": start, "end": end}
    if is_before and covered != (end - start).days:
        findings.add(DAYS_WITHOUT_COMMITMENT, CONDITIONS_FILE, subject, FIELD, days=(end - start).days, **facts)
    if not is_before and covered:
        findings.add(COMMITMENT_OF_THE_STUDY, CONDITIONS_FILE, subject, FIELD, **facts)


@rule(STAGES_FILE, THERMALS_FILE, POST_STUDY_FILE, CONDITIONS_FILE, OVERRIDES["thermal_bounds"])
def commitments_within_limits(case: Case, findings: Findings) -> None:
    """Require past commitments within the plant's limits at their delivery."""
    for plant, deliveries in _plants(case):
        for row in _windows(case, plant):
            for delivery, stage in enumerate(case.horizon.stages):
                if plant.deciders[delivery] == BEFORE_STUDY and deliveries.overlap_days(
                    delivery, row.start_date, row.end_date
                ):
                    _check_limits(case, plant.thermal, row, stage, findings)


def _check_limits(case: Case, plant: Thermal, row: PastCommitment, stage: Stage, findings: Findings) -> None:
    lower, upper = _limits(case, plant, stage)
    if not lower <= row.value_mw <= upper:
        subject = (*named("thermal", plant), *about("window from", str(row.start_date)))
        facts = {"value": row.value_mw, "stage": stage.id, "least": lower, "most": upper}
        findings.add(COMMITMENT_OUTSIDE_LIMITS, CONDITIONS_FILE, subject, f"{FIELD}.value_mw", **facts)


def _limits(case: Case, plant: Thermal, stage: Stage) -> tuple[float, float]:
    if not is_in_service(plant, stage.id):
        return 0.0, 0.0
    limits = {"min_generation_mw": plant.generation.min_mw, "max_generation_mw": plant.generation.max_mw}
    table = case.overrides.thermal_bounds
    if table is not None:
        rows = np.flatnonzero((table["thermal_id"] == plant.id) & (table["stage_id"] == stage.id))
        for name, declared in tuple(limits.items()):
            values = [value for value in table[name][rows].tolist() if not np.isnan(value)]
            limits[name] = values[-1] if values else declared
    return limits["min_generation_mw"], limits["max_generation_mw"]


@rule(THERMALS_FILE, OVERRIDES["thermal_bounds"])
def bounds_without_blocks(case: Case, findings: Findings) -> None:
    """Refuse bounds of an anticipated plant that differ by block: one number is committed for the stage."""
    table = case.overrides.thermal_bounds
    for plant in case.system.thermals if table is not None else ():
        if plant.anticipated_config is None or table is None:
            continue
        rows = np.flatnonzero((table["thermal_id"] == plant.id) & (table["block_id"] != ABSENT_ID))
        if len(rows):
            bounded = stages({int(stage) for stage in table["stage_id"][rows]})
            findings.add(
                BOUNDS_OF_BLOCKS, OVERRIDES["thermal_bounds"], named("thermal", plant), "block_id", value=bounded
            )


@rule(THERMALS_FILE, CONSTRAINTS_FILE)
def constraints_on_decisions(case: Case, findings: Findings) -> None:
    """Check `anticipated_decision`, which needs an anticipated plant, and `thermal_generation` of such a plant."""
    ahead = {plant.id for plant in case.system.thermals if plant.anticipated_config is not None}
    for constraint in case.generic_constraints.constraints:
        subject = constraint_subject(constraint)
        for term in constraint.terms:
            if term.variable == "anticipated_decision" and term.entity_id not in ahead:
                facts = {"value": term.entity_id, "anticipated": IdList(ahead)}
                findings.add(DECISION_NOT_ANTICIPATED, CONSTRAINTS_FILE, subject, "expression", **facts)
            if term.variable == "thermal_generation" and term.entity_id in ahead:
                findings.add(GENERATION_DECIDED_EARLIER, CONSTRAINTS_FILE, subject, "expression", value=term.entity_id)


@rule(CONFIG_FILE, STAGES_FILE, THERMALS_FILE, POST_STUDY_FILE)
def deliveries_without_a_price(case: Case, findings: Findings) -> None:
    """Warn of deliveries after the study that have no value without a boundary policy."""
    if case.config.policy.boundary is not None:
        return
    for plant, deliveries in _plants(case):
        if any(delivery >= deliveries.num_stages for delivery in plant.decided):
            findings.add(DELIVERY_WITHOUT_VALUE, POST_STUDY_FILE, named("thermal", plant.thermal))


def _plants(case: Case) -> Iterator[tuple[Anticipation, Deliveries]]:
    deliveries = Deliveries.of(case.horizon, case.post_study)
    for plant in anticipations(case.system.thermals, deliveries):
        yield plant, deliveries


def _windows(case: Case, plant: Anticipation) -> list[PastCommitment]:
    return [row for row in case.initial_conditions.past_commitments if row.thermal_id == plant.thermal.id]


RULES: tuple[Rule, ...] = (
    plants_of_commitments,
    stages_after_the_study,
    leads_within_the_study,
    leads_over_equal_stages,
    commitments_cover_the_lead,
    commitments_within_limits,
    bounds_without_blocks,
    constraints_on_decisions,
    deliveries_without_a_price,
)
