"""The files of system/ that list entities, one record per entity."""

from math import inf

from cobre.core.entities import (
    AnyEntity,
    Bus,
    EnergyContract,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
    canonical_order,
)
from cobre.core.hydro import Hydro
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files.hydro_forms import check_hydro_forms, in_order_of_groups

BUSES = "system/buses.json"
LINES = "system/lines.json"
HYDROS = "system/hydros.json"
THERMALS = "system/thermals.json"
SOURCES = "system/non_controllable_sources.json"
STATIONS = "system/pumping_stations.json"
CONTRACTS = "system/energy_contracts.json"


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


def read_buses(document: Document | None, problems: Problems) -> tuple[Bus, ...]:
    """The buses of system/buses.json, in canonical order."""
    file = decode(document, BusesFile, problems)
    return _ordered(file.buses, BUSES, "bus", problems) if file else ()


def read_lines(document: Document | None, problems: Problems) -> tuple[Line, ...]:
    """The lines of system/lines.json, in canonical order."""
    file = decode(document, LinesFile, problems)
    return _ordered(file.lines, LINES, "line", problems) if file else ()


def read_hydros(document: Document | None, problems: Problems) -> tuple[Hydro, ...]:
    """All hydro plants in canonical order, each with its unit groups in order of id."""
    file = decode(document, HydrosFile, problems)
    if file is None:
        return ()
    for hydro in file.hydros:
        check_hydro_forms(hydro, HYDROS, problems)
    return tuple(in_order_of_groups(hydro) for hydro in _ordered(file.hydros, HYDROS, "hydro", problems))


def read_thermals(document: Document | None, problems: Problems) -> tuple[Thermal, ...]:
    """The thermal plants of system/thermals.json, in canonical order."""
    file = decode(document, ThermalsFile, problems)
    if file is None:
        return ()
    for plant in file.thermals:
        _check_lead(plant, problems)
    return _ordered(file.thermals, THERMALS, "thermal", problems)


def _check_lead(plant: Thermal, problems: Problems) -> None:
    """An anticipated plant has exactly one lead, which is positive."""
    config = plant.anticipated_config
    if config is None:
        return
    entity, field = f"thermal {plant.id} ({plant.name})", "anticipated_config"
    if (config.lead_stages is None) == (config.lead_time_hours is None):
        message = "takes either `lead_stages` or `lead_time_hours`"
        problems.error(Layer.SCHEMA, THERMALS, entity, field, message, "one of the two")
    elif config.lead_stages is not None and config.lead_stages < 1:
        field, message = f"{field}.lead_stages", f"is {config.lead_stages}"
        problems.error(Layer.SCHEMA, THERMALS, entity, field, message, "at least 1")
    elif config.lead_time_hours is not None and not 0.0 < config.lead_time_hours < inf:
        field, message = f"{field}.lead_time_hours", f"is {config.lead_time_hours:g}"
        problems.error(Layer.SCHEMA, THERMALS, entity, field, message, "a number above 0")


def read_non_controllable_sources(document: Document | None, problems: Problems) -> tuple[NonControllableSource, ...]:
    """All non-controllable sources, in canonical order; empty without the file."""
    file = decode(document, SourcesFile, problems)
    return _ordered(file.non_controllable_sources, SOURCES, "non-controllable source", problems) if file else ()


def read_pumping_stations(document: Document | None, problems: Problems) -> tuple[PumpingStation, ...]:
    """All pumping stations, in canonical order; empty without the file."""
    file = decode(document, StationsFile, problems)
    return _ordered(file.pumping_stations, STATIONS, "pumping station", problems) if file else ()


def read_energy_contracts(document: Document | None, problems: Problems) -> tuple[EnergyContract, ...]:
    """All contracts, in canonical order; empty without the file."""
    file = decode(document, ContractsFile, problems)
    return _ordered(file.contracts, CONTRACTS, "contract", problems) if file else ()


def _ordered(entities: tuple[AnyEntity, ...], file: str, word: str, problems: Problems) -> tuple[AnyEntity, ...]:
    report_duplicates(file, word, [entity.id for entity in entities], problems)
    return canonical_order(entities)
