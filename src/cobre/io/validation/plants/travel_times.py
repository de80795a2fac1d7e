"""Travel times: arcs with a downstream plant, and past releases for water in transit when the study begins."""

from itertools import pairwise

from cobre.core.arrays import sum_in_order
from cobre.core.case import Case
from cobre.core.travel_time import PastRelease, travel_arcs
from cobre.core.units import HOURS_PER_DAY
from cobre.io.input_files import entities, initial_conditions, stages_file
from cobre.io.validation.layer_findings import Findings, Rule, listed, named, with_ids

FIELD = "past_defluences"


def travel_times_have_effect(case: Case, findings: Findings) -> None:
    """Warn of travel times of zero or without a downstream plant, and of those longer than the study."""
    total = sum_in_order(stage.hours for stage in case.horizon.stages)
    for hydro in case.system.hydros:
        hours, entity = hydro.travel_time_hours, named("hydro", hydro)
        if hours is None:
            continue
        if hours == 0.0:
            message = "is 0 and has no effect: water arrives at once"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message, "null means the same")
        elif hydro.downstream_id is None:
            message = "has no effect: there is no plant downstream"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message)
        elif hours >= total and case.config.policy.boundary is None:
            message = f"is {hours:g}, and the study has {total:g} hours: its releases never arrive"
            findings.warn(entities.HYDROS, entity, "travel_time_hours", message)


def one_time_into_a_plant_with_chronological_blocks(case: Case, findings: Findings) -> None:
    """Chronological blocks need one travel time per target: water of several arcs is stored as one volume."""
    stages = [
        stage.id for stage in case.horizon.stages if stage.block_mode == "chronological" and len(stage.blocks) > 1
    ]
    if not stages:
        return
    for hydro in case.system.hydros:
        hours = {arc.hours for arc in travel_arcs(case.system.hydros) if arc.downstream_id == hydro.id}
        if len(hours) > 1:
            shown = ", ".join(f"{value:g}" for value in sorted(hours))
            message = (
                f"water arrives after {shown} hours, but the blocks of {with_ids('stage', stages)} are chronological"
            )
            remedy = f"one travel time for all plants upstream, or parallel blocks in {stages_file.FILE}"
            findings.error(entities.HYDROS, named("hydro", hydro), "travel_time_hours", message, remedy)


def releases_before_the_study(case: Case, findings: Findings) -> None:
    """Windows end before the study, do not overlap, and belong to plants with a travel time."""
    known = {hydro.id for hydro in case.system.hydros}
    arcs = {arc.hydro_id for arc in travel_arcs(case.system.hydros)}
    start, file = case.horizon.stages[0].start_date, initial_conditions.FILE
    for id_ in sorted({row.hydro_id for row in case.initial_conditions.past_releases} - known):
        findings.error(file, "", f"{FIELD}.hydro_id", f"there is no hydro {id_}", f"declared: {listed(known)}")
    for row in case.initial_conditions.past_releases:
        entity = f"hydro {row.hydro_id}, window from {row.start_date}"
        if row.hydro_id in known - arcs:
            findings.warn(file, entity, FIELD, "has no effect: the plant has no travel time to a plant downstream")
        if row.end_date <= row.start_date:
            message = f"is {row.end_date}, not after start_date, which is {row.start_date}"
            findings.error(file, entity, f"{FIELD}.end_date", message, "the first day after the window")
        if row.end_date > start:
            message = f"is {row.end_date}, after the study starts on {start}"
            findings.error(file, entity, f"{FIELD}.end_date", message, f"{start} or earlier")
        findings.demand_not_negative(row.value_m3s, file, entity, f"{FIELD}.value_m3s")
    for first, second in pairwise(case.initial_conditions.past_releases):
        if first.hydro_id == second.hydro_id and second.start_date < first.end_date:
            message = f"the window from {second.start_date} begins before the one from {first.start_date} ends"
            findings.error(
                file, f"hydro {first.hydro_id}", f"{FIELD}.start_date", message, "windows that do not overlap"
            )


def releases_cover_the_travel_time(case: Case, findings: Findings) -> None:
    """Past releases cover the travel time, so that water in transit at the start is known."""
    start = case.horizon.stages[0].start_date
    for arc in travel_arcs(case.system.hydros):
        rows = [row for row in case.initial_conditions.past_releases if row.hydro_id == arc.hydro_id]
        covered = _hours_back(rows, start.toordinal())
        if covered < arc.hours:
            message = (
                f"water takes {arc.hours:g} hours to hydro {arc.downstream_id}, and releases are known for the "
                f"{covered:g} hours before {start}"
            )
            remedy = "windows without gaps that go back that far"
            findings.error(initial_conditions.FILE, f"hydro {arc.hydro_id}", FIELD, message, remedy)


def _hours_back(rows: list[PastRelease], start: int) -> float:
    """Hours that windows reach back from a day without a gap."""
    reached = start
    for row in sorted(rows, key=lambda row: row.end_date, reverse=True):
        if row.end_date.toordinal() < reached:
            break
        reached = min(reached, row.start_date.toordinal())
    return (start - reached) * HOURS_PER_DAY


RULES: tuple[Rule, ...] = (
    travel_times_have_effect,
    one_time_into_a_plant_with_chronological_blocks,
    releases_before_the_study,
    releases_cover_the_travel_time,
)
