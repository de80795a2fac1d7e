"""A study as it was read: entities in canonical order, tables by column, configuration."""

import re
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, replace
from datetime import date
from typing import Any, Final, Literal, TypeVar

from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.core.config import Config
from cobre.core.delays import PastCommitment, PastRelease, PostStudy
from cobre.core.entities import Bus, EnergyContract, Line, NonControllableSource, Penalties, PumpingStation, Thermal
from cobre.core.generic_constraints import GenericConstraints
from cobre.core.hydro import Hydro, ProductionModels
from cobre.core.temporal import Horizon
from cobre.records import dataclass
from cobre.text import counted

# Columns by their names in the case format: ids int32 (null: ABSENT_ID), numbers float64 (null: NaN), dates
# datetime64[D]. All columns have one length, and all columns of the format are there (optional ones that the file has
# not are null throughout). `load_case` sorts rows by their keys.
Table = Mapping[str, NDArray[Any]]

# The case format: that of Cobre 0.18, or that of its successor Novomodelo 0.19.
FormatVersion = Literal["0.18", "0.19"]

# An id that was null, such as the block of a row that holds for all blocks. Not -1: stage ids may be negative.
ABSENT_ID: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class CorrelationGroup:
    """Entities whose noise is correlated; `entities` are (class, id) with class inflow, load or ncs."""

    name: str
    entities: tuple[tuple[str, int], ...]
    matrix: Floats


@dataclass(frozen=True, slots=True)
class Correlation:
    """Profiles of groups, and which stage uses which; other stages use the profile `default`."""

    profiles: Mapping[str, tuple[CorrelationGroup, ...]]
    schedule: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ScenarioTables:
    """The tables of `scenarios/`; None: no such file. Factors by (entity id, stage id), one number per block."""

    inflow_seasonal_stats: Table | None = None
    inflow_ar_coefficients: Table | None = None
    inflow_annual_component: Table | None = None
    inflow_history: Table | None = None
    load_seasonal_stats: Table | None = None
    non_controllable_stats: Table | None = None
    external_inflow_scenarios: Table | None = None
    external_load_scenarios: Table | None = None
    external_ncs_scenarios: Table | None = None
    noise_openings: Table | None = None
    correlation: Correlation | None = None
    load_factors: Mapping[tuple[int, int], tuple[float, ...]] = field(default_factory=dict)
    non_controllable_factors: Mapping[tuple[int, int], tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OverrideTables:
    """The tables of `constraints/` except generic constraints; None: no such file."""

    thermal_bounds: Table | None = None
    hydro_bounds: Table | None = None
    hydro_unit_group_bounds: Table | None = None
    line_bounds: Table | None = None
    pumping_bounds: Table | None = None
    contract_bounds: Table | None = None
    ncs_bounds: Table | None = None
    penalty_overrides_bus: Table | None = None
    penalty_overrides_line: Table | None = None
    penalty_overrides_hydro: Table | None = None
    penalty_overrides_ncs: Table | None = None


@dataclass(frozen=True, slots=True)
class InflowObservation:
    """A plant's mean natural inflow over some days; `end_date` is the first day after them."""

    hydro_id: int
    start_date: date
    end_date: date
    value_m3s: float


@dataclass(frozen=True, slots=True)
class InitialConditions:
    """Initial storages and observations, by hydro id; plants that are not named start empty."""

    storage_hm3: Mapping[int, float]
    filling_storage_hm3: Mapping[int, float] = field(default_factory=dict)
    recent_observations: tuple[InflowObservation, ...] = ()
    past_commitments: tuple[PastCommitment, ...] = ()
    past_releases: tuple[PastRelease, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """All entities, each class in canonical order."""

    buses: tuple[Bus, ...]
    lines: tuple[Line, ...] = ()
    thermals: tuple[Thermal, ...] = ()
    hydros: tuple[Hydro, ...] = ()
    non_controllable_sources: tuple[NonControllableSource, ...] = ()
    pumping_stations: tuple[PumpingStation, ...] = ()
    energy_contracts: tuple[EnergyContract, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Case:
    """A study as its case directory declares it: system, stages, scenarios, settings. Immutable.

    Fields have the names and units of the files: `horizon` is stages.json, `system` the folder system/, `scenarios`
    the tables of scenarios/, `overrides` those of constraints/. Defaults and overrides are not applied yet; that
    happens when the LPs are built. `cobre.load_case` reads a case, with entities in canonical order
    (`canonical_order`) and rows of tables in the order of their keys; `cobre.changed` makes another one of it,
    `cobre.save_case` writes it. All functions that take a case accept its entities, rows and mappings in any order:
    no result depends on it. `format_version` is the format of the files, which decides what some settings mean.

    >>> case = cobre.load_case("examples/two_reservoirs")
    >>> [hydro.name for hydro in case.system.hydros]
    ['Upper', 'Lower']
    >>> case.system.hydros[0].reservoir.max_storage_hm3
    1600.0
    """

    name: str
    config: Config
    horizon: Horizon
    initial_conditions: InitialConditions
    penalties: Penalties
    system: System
    production: ProductionModels
    scenarios: ScenarioTables
    overrides: OverrideTables
    generic_constraints: GenericConstraints
    post_study: PostStudy = field(default_factory=PostStudy)
    format_version: FormatVersion = "0.18"

    def __repr__(self) -> str:
        """Return one line of counts: all fields of a national case have a hundred thousand characters."""
        system, stages = self.system, self.horizon.stages
        counts = (
            (len(stages), "stage"),
            (len(system.hydros), "hydro"),
            (len(system.thermals), "thermal"),
            (len(system.buses), "bus", "buses"),
            (len(system.lines), "line"),
            (len(system.non_controllable_sources), "non-controllable source"),
        )
        return f"<Case {self.name!r}: {', '.join(counted(*named) for named in counts if named[0])}>"

    def _repr_html_(self) -> str:

        return case_html(self)

    @property
    def is_risk_averse(self) -> bool:
        """Whether a stage has a risk measure other than the expectation."""
        risks = (stage.risk for stage in self.horizon.stages)
        return any(risk is not None and not risk.is_expectation for risk in risks)


# Changed copies of cases, which are immutable: `changed` replaces values at any depth in one call.

_STEP = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[(?P<id>-?\d+)\])?")
Record = TypeVar("Record")


def changed(record: Record, values: Mapping[str, Any]) -> Record:
    """Return a case, or any part of one, with other values of some fields; the given one is not changed.

        changed(case, {"config.training.tree_seed": 8, "system.hydros[3].reservoir.max_storage_hm3": 500.0})

    Names are those of the fields, joined by dots; `[3]` is the entity with the id 3, not the third one. Raises KeyError
    for a path that names no field or entity.
    """
    for path, value in values.items():
        if not isinstance(path, str):
            raise TypeError(f"give the path as text, such as config.training.tree_seed, not {path!r}")
        record = _with(record, path.split("."), path, value)
    return record


def _with(record: Any, steps: list[str], path: str, value: Any) -> Any:
    if not steps:
        return value
    step = _STEP.fullmatch(steps[0])
    if step is None:
        raise KeyError(f"{path}: {steps[0]!r} is not a field name, with or without an id as in hydros[3]")
    inner = _field(record, step["name"], path)
    if step["id"] is not None:
        new = _with_entity(inner, int(step["id"]), steps[1:], path, value)
    else:
        new = _with(inner, steps[1:], path, value)
    return replace(record, **{step["name"]: new})


def _field(record: Any, name: str, path: str) -> Any:
    if not is_dataclass(record) or isinstance(record, type):
        raise KeyError(f"{path}: there are no fields before {name!r}")
    fields_of_record = [item.name for item in fields(record)]
    if name not in fields_of_record:
        raise KeyError(f"{path}: a {type(record).__name__} has no field {name!r}; it has {', '.join(fields_of_record)}")
    return getattr(record, name)


def _with_entity(entities: Any, id_: int, steps: list[str], path: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(entities, tuple):
        raise KeyError(f"{path}: [{id_}] follows something that is not a list of entities")
    indices = [index for index, entity in enumerate(entities) if getattr(entity, "id", None) == id_]
    if not indices:
        ids = ", ".join(str(getattr(entity, "id", "?")) for entity in entities) or "none"
        raise KeyError(f"{path}: there is no entity with the id {id_}; there are {ids}")
    [index] = indices
    return (*entities[:index], _with(entities[index], steps, path, value), *entities[index + 1 :])


# HTML tables that notebooks show for a case and for other objects; without scripts or external resources.

_HEAD = 'style="text-align:left;font-weight:500;opacity:.75"'
_CELL = 'style="text-align:left"'


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Return a heading and a table of names and values, in the notebook's own colours."""
    from html import escape  # noqa: PLC0415 - only notebooks need it

    return f'<div class="cobre-result"><strong>{escape(title)}</strong>{facts_table(facts)}</div>'


def facts_table(facts: Mapping[str, str]) -> str:
    """Return an HTML table of names and values; empty values are left out."""
    from html import escape  # noqa: PLC0415

    rows = "".join(
        f"<tr><th {_HEAD}>{escape(name)}</th><td {_CELL}>{escape(value)}</td></tr>"
        for name, value in facts.items()
        if value
    )
    return f'<table style="margin:4px 0">{rows}</table>'


def case_html(case: "Case") -> str:
    """Return a table of the main facts of a case: horizon, number of entities, storage, power, objective."""
    system, stages, training = case.system, case.horizon.stages, case.config.training
    storage = sum(hydro.reservoir.max_storage_hm3 for hydro in system.hydros)
    power = sum(plant.generation.max_mw for plant in system.thermals)
    facts = {
        "stages": f"{len(stages)}, from {stages[0].start_date} to {stages[-1].end_date}" if stages else "none",
        "hydro plants": _counted(len(system.hydros), f"{storage:,.0f} hm³ of storage"),
        "thermal plants": _counted(len(system.thermals), f"{power:,.0f} MW"),
        "wind, solar and other": _counted(len(system.non_controllable_sources)),
        "buses": _counted(len(system.buses)),
        "lines": _counted(len(system.lines)),
        "contracts": _counted(len(system.energy_contracts)),
        "pumping stations": _counted(len(system.pumping_stations)),
        "objective": "risk-averse" if case.is_risk_averse else "expected cost",
        "training": "" if training.enabled else "switched off",
    }
    return facts_html(f"Case {case.name}", facts)


def _counted(count: int, more: str = "") -> str:
    """Return a count with thousands separators and a remark; empty for zero."""
    return f"{count:,}" + (f", {more}" if more else "") if count else ""
