"""The files of system/ that list entities, one record per entity."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from cobre.core.case import InflowObservation, InitialConditions
from cobre.core.delays import PastCommitment, PastRelease
from cobre.core.entities import (
    AnyEntity,
    Bus,
    BusPenalties,
    EnergyContract,
    HydroPenalties,
    Line,
    LinePenalties,
    NonControllablePenalties,
    NonControllableSource,
    Penalties,
    PumpingStation,
    Thermal,
    canonical_order,
)
from cobre.core.file_names import (
    BUSES_FILE,
    CONDITIONS_FILE,
    CONTRACTS_FILE,
    HYDROS_FILE,
    LINES_FILE,
    SOURCES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.core.hydro import Hydro
from cobre.io.decoding.json_documents import Document, rewritten
from cobre.io.decoding.json_records import JsonFile, decode
from cobre.io.decoding.schema_errors import report_duplicates
from cobre.io.findings import Findings, Layer, Subject, error_code, named
from cobre.records import dataclass

FIELD_OF_FORM_MISSING = error_code("field-of-form-missing", Layer.SCHEMA, "is missing", remedy="{form} needs it")
FIELD_OF_OTHER_FORM = error_code("field-of-other-form", Layer.SCHEMA, "is not a field of {form}", remedy="use `{own}`")
TRAVEL_TIME = error_code("travel-time-negative", Layer.SCHEMA, "is {value:g}", expected="at least 0, or null")
NO_UNIT_GROUPS = error_code("no-unit-groups", Layer.SCHEMA, "there is none", expected="at least one group")

LEADS = error_code(
    "anticipation-lead",
    Layer.SCHEMA,
    "takes either `lead_stages` or `lead_time_hours`",
    expected="one of the two",
)

LEAD_STAGES = error_code("anticipation-lead-stages", Layer.SCHEMA, "is {value}", expected="at least 1")
LEAD_HOURS = error_code("anticipation-lead-hours", Layer.SCHEMA, "is {value:g}", expected="a number above 0")

# Checks of the parts of a hydro plant whose fields depend on their `type`.


def check_hydro_forms(hydro: Hydro, file: str, findings: Findings) -> None:
    """Add an error for each field that a part lacks or must not have, and for missing or duplicate unit groups."""
    subject = named("hydro", hydro)
    if hydro.tailrace is not None:
        fields = {"coefficients": hydro.tailrace.coefficients, "points": hydro.tailrace.points}
        field = "coefficients" if hydro.tailrace.type == "polynomial" else "points"
        _check_form(f"tailrace ({hydro.tailrace.type})", fields, field, file, subject, findings)
    if hydro.hydraulic_losses is not None:
        losses = hydro.hydraulic_losses
        field = "value" if losses.type == "factor" else "value_m"
        values = {"value": losses.value, "value_m": losses.value_m}
        _check_form(f"hydraulic_losses ({losses.type})", values, field, file, subject, findings)
    if hydro.travel_time_hours is not None and hydro.travel_time_hours < 0.0:
        findings.add(TRAVEL_TIME, file, subject, "travel_time_hours", value=hydro.travel_time_hours)
    if not hydro.unit_groups:
        findings.add(NO_UNIT_GROUPS, file, subject, "unit_groups")
    groups = [group.id for group in hydro.unit_groups]
    report_duplicates(file, "unit group", groups, findings, within=subject)


def in_order_of_groups(hydro: Hydro) -> Hydro:
    """Return the plant with its unit groups by id."""
    return replace(hydro, unit_groups=tuple(sorted(hydro.unit_groups, key=lambda group: group.id)))


def _check_form(
    form: str, fields: Mapping[str, object], own: str, file: str, subject: Subject, findings: Findings
) -> None:
    part = form.split(" ", maxsplit=1)[0]
    for name, value in fields.items():
        if name == own and value is None:
            findings.add(FIELD_OF_FORM_MISSING, file, subject, f"{part}.{name}", form=form)
        elif name != own and value is not None:
            findings.add(FIELD_OF_OTHER_FORM, file, subject, f"{part}.{name}", form=form, own=own)


class BusesFile(JsonFile):
    """All of buses.json."""

    buses: tuple[Bus, ...]


class LinesFile(JsonFile):
    """All of lines.json."""

    lines: tuple[Line, ...]


class HydrosFile(JsonFile):
    """All of hydros.json."""

    hydros: tuple[Hydro, ...]


class ThermalsFile(JsonFile):
    """All of thermals.json."""

    thermals: tuple[Thermal, ...]


class SourcesFile(JsonFile):
    """All of non_controllable_sources.json."""

    non_controllable_sources: tuple[NonControllableSource, ...]


class StationsFile(JsonFile):
    """All of pumping_stations.json."""

    pumping_stations: tuple[PumpingStation, ...]


class ContractsFile(JsonFile):
    """All of energy_contracts.json."""

    contracts: tuple[EnergyContract, ...]


def read_buses(document: Document | None, findings: Findings) -> tuple[Bus, ...]:
    """Return the buses of system/buses.json, in canonical order."""
    file = decode(document, BusesFile, findings)
    return _ordered(file.buses, BUSES_FILE, "bus", findings) if file else ()


def read_lines(document: Document | None, findings: Findings) -> tuple[Line, ...]:
    """Return the lines of system/lines.json, in canonical order."""
    file = decode(document, LinesFile, findings)
    return _ordered(file.lines, LINES_FILE, "line", findings) if file else ()


def read_hydros(document: Document | None, findings: Findings) -> tuple[Hydro, ...]:
    """Read all hydro plants in canonical order, each with its unit groups in order of id."""
    file = decode(document, HydrosFile, findings)
    if file is None:
        return ()
    for hydro in file.hydros:
        check_hydro_forms(hydro, HYDROS_FILE, findings)
    return tuple(in_order_of_groups(hydro) for hydro in _ordered(file.hydros, HYDROS_FILE, "hydro", findings))


def read_thermals(document: Document | None, findings: Findings) -> tuple[Thermal, ...]:
    """Return the thermal plants of system/thermals.json, in canonical order."""
    file = decode(document, ThermalsFile, findings)
    if file is None:
        return ()
    for plant in file.thermals:
        _check_lead(plant, findings)
    return _ordered(file.thermals, THERMALS_FILE, "thermal", findings)


def _check_lead(plant: Thermal, findings: Findings) -> None:
    """Require exactly one lead, which is positive, of an anticipated plant."""
    config = plant.anticipated_config
    if config is None:
        return
    subject, field = named("thermal", plant), "anticipated_config"
    if (config.lead_stages is None) == (config.lead_time_hours is None):
        findings.add(LEADS, THERMALS_FILE, subject, field)
    elif config.lead_stages is not None and config.lead_stages < 1:
        findings.add(LEAD_STAGES, THERMALS_FILE, subject, f"{field}.lead_stages", value=config.lead_stages)
    elif config.lead_time_hours is not None and not 0.0 < config.lead_time_hours < inf:
        findings.add(LEAD_HOURS, THERMALS_FILE, subject, f"{field}.lead_time_hours", value=config.lead_time_hours)


def read_non_controllable_sources(document: Document | None, findings: Findings) -> tuple[NonControllableSource, ...]:
    """Read all non-controllable sources, in canonical order; empty without the file."""
    file = decode(document, SourcesFile, findings)
    return _ordered(file.non_controllable_sources, SOURCES_FILE, "non-controllable source", findings) if file else ()


def read_pumping_stations(document: Document | None, findings: Findings) -> tuple[PumpingStation, ...]:
    """Read all pumping stations, in canonical order; empty without the file."""
    file = decode(document, StationsFile, findings)
    return _ordered(file.pumping_stations, STATIONS_FILE, "pumping station", findings) if file else ()


def read_energy_contracts(document: Document | None, findings: Findings) -> tuple[EnergyContract, ...]:
    """Read all contracts, in canonical order; empty without the file."""
    file = decode(document, ContractsFile, findings)
    return _ordered(file.contracts, CONTRACTS_FILE, "contract", findings) if file else ()


def _ordered(entities: tuple[AnyEntity, ...], file: str, word: str, findings: Findings) -> tuple[AnyEntity, ...]:
    report_duplicates(file, word, [entity.id for entity in entities], findings)
    return canonical_order(entities)


# penalties.json: default costs of violations.


class PenaltiesFile(JsonFile):
    """All of penalties.json."""

    bus: BusPenalties
    line: LinePenalties
    hydro: HydroPenalties
    non_controllable_source: NonControllablePenalties


def read_penalties(document: Document | None, findings: Findings) -> Penalties | None:
    """Return the costs; a null inflow_nonnegativity_cost means its default. None after errors."""
    file = decode(_without_null_default(document), PenaltiesFile, findings)
    return None if file is None else Penalties(file.bus, file.line, file.hydro, file.non_controllable_source)


def _without_null_default(document: Document | None) -> Document | None:
    key = "inflow_nonnegativity_cost"
    hydro = document.content.get("hydro") if document and isinstance(document.content, dict) else None
    if document is None or not isinstance(hydro, dict) or hydro.get(key, 0.0) is not None:
        return document
    others = {name: value for name, value in hydro.items() if name != key}
    return rewritten(document, {**document.content, "hydro": others})


# initial_conditions.json: storages, past inflows, releases and commitments at the start of the study.


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """The initial volume of a reservoir, hm3."""

    hydro_id: int
    value_hm3: float


class InitialConditionsFile(JsonFile):
    """All of initial_conditions.json."""

    storage: tuple[StorageRecord, ...]
    filling_storage: tuple[StorageRecord, ...]
    recent_observations: tuple[InflowObservation, ...] = ()
    past_defluences: tuple[PastRelease, ...] = ()
    past_anticipated_commitments: tuple[PastCommitment, ...] = ()


def read_initial_conditions(document: Document | None, findings: Findings) -> InitialConditions | None:
    """Return the initial conditions; rows in order of entity and date. None after errors."""
    file = decode(document, InitialConditionsFile, findings)
    if file is None:
        return None
    report_duplicates(CONDITIONS_FILE, "storage of hydro", [row.hydro_id for row in file.storage], findings, "hydro_id")
    report_duplicates(
        CONDITIONS_FILE,
        "filling storage of hydro",
        [row.hydro_id for row in file.filling_storage],
        findings,
        "hydro_id",
    )
    return InitialConditions(
        storage_hm3=_by_hydro(file.storage),
        filling_storage_hm3=_by_hydro(file.filling_storage),
        recent_observations=tuple(sorted(file.recent_observations, key=lambda row: (row.hydro_id, row.start_date))),
        past_releases=tuple(sorted(file.past_defluences, key=lambda row: (row.hydro_id, row.start_date))),
        past_commitments=tuple(
            sorted(file.past_anticipated_commitments, key=lambda row: (row.thermal_id, row.start_date))
        ),
    )


def _by_hydro(rows: tuple[StorageRecord, ...]) -> dict[int, float]:
    return {row.hydro_id: row.value_hm3 for row in sorted(rows, key=lambda row: row.hydro_id)}
