"""Anticipated thermal plants: leads within the study, and past commitments for what was decided before it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from cobre.core.anticipation import BEFORE_STUDY, Anticipation, Deliveries, PastCommitment, anticipations
from cobre.core.case import ABSENT_ID, Case
from cobre.core.entities import Thermal, is_in_service
from cobre.core.temporal import Stage
from cobre.io.constraints import reading as generic_constraints
from cobre.io.input_files import entities, stages_file
from cobre.io.input_files.table_formats import OVERRIDE_TABLES
from cobre.io.validation.generic_constraints import entity_of
from cobre.io.validation.layer_findings import Findings, Rule, listed, named, with_ids

FIELD = "past_anticipated_commitments"
CONFIG = "anticipated_config"


def plants_of_commitments(case: Case, findings: Findings) -> None:
    """Past commitments and post-study bounds belong to anticipated plants."""
    known = {plant.id for plant in case.system.thermals if plant.anticipated_config is not None}
    for file, rows, field in (
        (entities.CONDITIONS_FILE, case.initial_conditions.past_commitments, f"{FIELD}.thermal_id"),
        (stages_file.POST_STUDY_FILE, case.post_study.thermal_bounds, "thermal_bounds.thermal_id"),
    ):
        for id_ in sorted({row.thermal_id for row in rows} - known):
            message = f"there is no anticipated thermal {id_}"
            findings.error(file, "", field, message, f"anticipated: {listed(known)}")


def stages_after_the_study(case: Case, findings: Findings) -> None:
    """Post-study stages begin where the study ends and follow one another; bounds name existing ones."""
    after, file = case.post_study, stages_file.POST_STUDY_FILE
    ends = [case.horizon.stages[-1].end_date, *(stage.end_date for stage in after.stages)]
    for number, (stage, end) in enumerate(zip(after.stages, ends, strict=False)):
        if stage.start_date != end:
            message = f"is {stage.start_date}, but the stage before it ends on {end}"
            findings.error(file, f"stage {number}", "start_date", message, f"{end}")
    for row in after.thermal_bounds:
        entity = f"thermal {row.thermal_id}, stage {row.post_study_stage_index}"
        if not 0 <= row.post_study_stage_index < len(after.stages):
            message = f"there are {len(after.stages)} stages, counted from 0"
            findings.error(file, entity, "post_study_stage_index", message, "one of them")
        findings.demand_order(row.min_mw, row.max_mw, file, entity, ("min_mw", "max_mw"))


def leads_within_the_study(case: Case, findings: Findings) -> None:
    """An anticipated plant delivers within the study, or in later stages that have bounds for it."""
    given = {(row.thermal_id, row.post_study_stage_index) for row in case.post_study.thermal_bounds}
    for plant, deliveries in _plants(case):
        entity = named("thermal", plant.thermal)
        lead = plant.thermal.anticipated_config.lead_stages if plant.thermal.anticipated_config else None
        if lead is not None and lead > len(deliveries.hours):
            message = f"is {lead}, and there are {len(deliveries.hours)} stages to deliver in"
            findings.error(entities.THERMALS, entity, f"{CONFIG}.lead_stages", message, "a lead within the study")
        for delivery in _decided(plant):
            index = delivery - deliveries.num_stages
            if index >= 0 and (plant.thermal.id, index) not in given:
                message = f"the study commits power for stage {index}, which has no bounds"
                findings.error(stages_file.POST_STUDY_FILE, entity, "thermal_bounds", message, "a row for it")


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
            message = f"counts a stage of {changes[0][0]} days like one of {changes[0][1]}"
            remedy = "`lead_time_hours` counts hours"
            findings.warn(entities.THERMALS, named("thermal", plant.thermal), f"{CONFIG}.lead_stages", message, remedy)


EVEN = 1.5  # months count as equal, weeks and months do not


def commitments_cover_the_lead(case: Case, findings: Findings) -> None:
    """Past commitments follow one another and cover exactly the deliveries decided before the study."""
    for plant, deliveries in _plants(case):
        windows = _windows(case, plant)
        _check_windows(plant.thermal, windows, findings)
        before = [at for at, stage in enumerate(plant.deciders) if stage == BEFORE_STUDY]
        for delivery in range(len(deliveries.hours)):
            _check_coverage(plant.thermal, deliveries, delivery, windows, delivery in before, findings)


def _check_windows(plant: Thermal, windows: Sequence[PastCommitment], findings: Findings) -> None:
    entity, file = named("thermal", plant), entities.CONDITIONS_FILE
    for row in windows:
        if row.end_date <= row.start_date:
            message = f"is {row.end_date}, not after start_date, which is {row.start_date}"
            findings.error(file, entity, f"{FIELD}.end_date", message, "the first day after the window")
    for first, second in pairwise(windows):
        if second.start_date < first.end_date:
            message = f"the window from {second.start_date} begins before the one from {first.start_date} ends"
            findings.error(file, entity, f"{FIELD}.start_date", message, "windows that do not overlap")


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
    entity, file = named("thermal", plant), entities.CONDITIONS_FILE
    if is_before and covered != (end - start).days:
        message = (
            f"{covered} of the {(end - start).days} days from {start} to {end} have commitments made before the study"
        )
        findings.error(file, entity, FIELD, message, "one window for each such day; 0 MW counts as a commitment")
    if not is_before and covered:
        message = f"{covered} days from {start} to {end} have commitments, but the study decides these itself"
        findings.error(file, entity, FIELD, message, "windows that end where the lead time ends")


def commitments_within_limits(case: Case, findings: Findings) -> None:
    """A past commitment lies within the plant's limits at its delivery."""
    for plant, deliveries in _plants(case):
        for row in _windows(case, plant):
            for delivery, stage in enumerate(case.horizon.stages):
                if plant.deciders[delivery] == BEFORE_STUDY and deliveries.overlap_days(
                    delivery, row.start_date, row.end_date
                ):
                    _check_order(case, plant.thermal, row, stage, findings)


def _check_order(case: Case, plant: Thermal, row: PastCommitment, stage: Stage, findings: Findings) -> None:
    least, most = _limits(case, plant, stage)
    if least <= row.value_mw <= most:
        return
    entity = f"{named('thermal', plant)}, window from {row.start_date}"
    message = f"is {row.value_mw:g}, but the limits in stage {stage.id} are {least:g} to {most:g} MW"
    findings.error(entities.CONDITIONS_FILE, entity, f"{FIELD}.value_mw", message, "a value within these limits")


def _limits(case: Case, plant: Thermal, stage: Stage) -> tuple[float, float]:
    if not is_in_service(plant, stage.id):
        return 0.0, 0.0
    found = {"min_generation_mw": plant.generation.min_mw, "max_generation_mw": plant.generation.max_mw}
    table = case.overrides.thermal_bounds
    if table is not None:
        rows = np.flatnonzero((table["thermal_id"] == plant.id) & (table["stage_id"] == stage.id))
        for name, declared in tuple(found.items()):
            given = [value for value in table[name][rows].tolist() if not np.isnan(value)]
            found[name] = given[-1] if given else declared
    return found["min_generation_mw"], found["max_generation_mw"]


def bounds_without_blocks(case: Case, findings: Findings) -> None:
    """Bounds of an anticipated plant must not differ by block: one number is committed for the stage."""
    table = case.overrides.thermal_bounds
    if table is None:
        return
    for plant in case.system.thermals:
        rows = np.flatnonzero((table["thermal_id"] == plant.id) & (table["block_id"] != ABSENT_ID))
        if plant.anticipated_config is not None and len(rows):
            stages = sorted({int(stage) for stage in table["stage_id"][rows]})
            message = (
                f"is given in {with_ids('stage', stages)}; power that is decided ahead has one limit for all blocks"
            )
            file = OVERRIDE_TABLES["thermal_bounds"].file
            findings.error(file, named("thermal", plant), "block_id", message, "null")


def constraints_on_decisions(case: Case, findings: Findings) -> None:
    """`anticipated_decision` needs an anticipated plant, whose `thermal_generation` was decided earlier."""
    ahead = {plant.id for plant in case.system.thermals if plant.anticipated_config is not None}
    for constraint in case.generic_constraints.constraints:
        for term in constraint.terms:
            file, entity = generic_constraints.FILE, entity_of(constraint)
            if term.variable == "anticipated_decision" and term.entity_id not in ahead:
                message = f"thermal {term.entity_id} is not an anticipated plant"
                findings.error(file, entity, "expression", message, f"anticipated: {listed(ahead)}")
            if term.variable == "thermal_generation" and term.entity_id in ahead:
                message = f"thermal_generation({term.entity_id}) is power that was decided earlier"
                remedy = f"anticipated_decision({term.entity_id}) is what a stage decides"
                findings.warn(file, entity, "expression", message, remedy)


def deliveries_without_a_price(case: Case, findings: Findings) -> None:
    """Warn of deliveries after the study that have no value without a boundary policy."""
    if case.config.policy.boundary is not None:
        return
    for plant, deliveries in _plants(case):
        if any(delivery >= deliveries.num_stages for delivery in _decided(plant)):
            message = (
                "without `policy.boundary`, power delivered after the study has no value: the minimum is committed"
            )
            findings.warn(stages_file.POST_STUDY_FILE, named("thermal", plant.thermal), "", message)


def _plants(case: Case) -> Iterator[tuple[Anticipation, Deliveries]]:
    deliveries = Deliveries.of(case.horizon, case.post_study)
    for plant in anticipations(case.system.thermals, deliveries):
        yield plant, deliveries


def _windows(case: Case, plant: Anticipation) -> list[PastCommitment]:
    return [row for row in case.initial_conditions.past_commitments if row.thermal_id == plant.thermal.id]


def _decided(plant: Anticipation) -> list[int]:
    return [delivery for stage in range(plant.num_stages) for delivery in plant.decided_in(stage)]


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
