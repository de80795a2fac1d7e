"""The tables of a case with their formats, and the entity classes of their id columns."""

from collections.abc import Iterator, Mapping, Sequence

from cobre.core.case import Case, Table
from cobre.io.constraints.reading import BOUNDS
from cobre.io.decoding.parquet_tables import TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.io.validation.layer_findings import Named
from cobre.records import dataclass

# The entity class of each id column.
CLASS_OF_COLUMN: Mapping[str, str] = {
    "hydro_id": "hydro",
    "bus_id": "bus",
    "ncs_id": "non-controllable source",
    "thermal_id": "thermal",
    "line_id": "line",
    "pumping_station_id": "pumping station",
    "contract_id": "contract",
    "constraint_id": "constraint",
}


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids that a case declares, by class, and its stages."""

    by_class: Mapping[str, frozenset[int]]
    stages: frozenset[int]
    pre_study_stages: frozenset[int]
    seasons: frozenset[int]


def declared_ids(case: Case) -> Ids:
    """The ids that each entity class declares, which other files may refer to."""
    system, horizon = case.system, case.horizon
    classes: dict[str, Sequence[Named]] = {
        "bus": system.buses,
        "line": system.lines,
        "thermal": system.thermals,
        "hydro": system.hydros,
        "non-controllable source": system.non_controllable_sources,
        "pumping station": system.pumping_stations,
        "contract": system.energy_contracts,
        "constraint": case.generic_constraints.constraints,
    }
    definitions = horizon.season_definitions
    return Ids(
        by_class={word: frozenset(entity.id for entity in entities) for word, entities in classes.items()},
        stages=frozenset(stage.id for stage in horizon.stages),
        pre_study_stages=frozenset(stage.id for stage in horizon.pre_study_stages),
        seasons=frozenset(season.id for season in definitions.seasons) if definitions else frozenset(),
    )


def scenario_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The tables of scenarios/ that the case has."""
    for name, form in SCENARIO_TABLES.items():
        table = getattr(case.scenarios, name)
        if table is not None:
            yield form, table


def override_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The tables of constraints/ that the case has, bounds of generic constraints included."""
    for name, form in OVERRIDE_TABLES.items():
        table = getattr(case.overrides, name)
        if table is not None:
            yield form, table
    if case.generic_constraints.bounds is not None:
        yield BOUNDS, case.generic_constraints.bounds


def production_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The Parquet tables of system/ that the case has, by file."""
    for name, form in PRODUCTION_TABLES.items():
        table = getattr(case.production, name)
        if table is not None:
            yield form, table
