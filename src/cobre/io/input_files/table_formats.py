"""The Parquet tables of the case format, column by column."""

from collections.abc import Mapping
from dataclasses import replace

from cobre.core.case import FormatVersion
from cobre.core.file_names import (
    ENERGY_PRODUCTIVITY_FILE,
    EXTERNAL_INFLOWS_FILE,
    EXTERNAL_LOADS_FILE,
    EXTERNAL_SOURCES_FILE,
    GEOMETRY_FILE,
    HISTORY_FILE,
    HYPERPLANES_FILE,
    INFLOW_ANNUAL_FILE,
    INFLOW_COEFFICIENTS_FILE,
    INFLOW_STATS_FILE,
    LOAD_STATS_FILE,
    OPENINGS_FILE,
    SOURCE_BOUNDS_FILE,
    SOURCE_STATS_FILE,
    TAILRACE_FILE,
)
from cobre.io.decoding.parquet_tables import Column, ColumnKind, TableFormat


def _ids(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "id") for name in names)


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "number") for name in names)


def _overrides(*names: str) -> tuple[Column, ...]:
    """Return optional, nullable columns: where a value is missing, the declared one applies."""
    return tuple(Column(name, "number", is_required=False, is_nullable=True) for name in names)


def _optional_id(name: str) -> Column:
    return Column(name, "id", is_required=False, is_nullable=True)


def _of_kind(kind: ColumnKind, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names)


def _table(file: str, columns: tuple[Column, ...], *keys: str) -> TableFormat:
    return TableFormat(file, columns, keys)


def _bounds(name: str, id_columns: tuple[str, ...], *numbers: str) -> TableFormat:
    """Return a table of overrides by entity, stage and (null: every) block."""
    keys = (*id_columns, "stage_id", "block_id")
    columns = (*_ids(*id_columns, "stage_id"), _optional_id("block_id"), *_overrides(*numbers))
    return TableFormat(f"constraints/{name}.parquet", columns, keys)


def _prices(name: str, id_column: str, *costs: str) -> TableFormat:
    """Return a table of prices by entity and stage."""
    columns = (*_ids(id_column, "stage_id"), *_overrides(*costs))
    return TableFormat(f"constraints/penalty_overrides_{name}.parquet", columns, (id_column, "stage_id"))


TURBINES = ("min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw")
HYDRO_COSTS = (
    "spillage_cost",
    "turbined_cost",
    "diversion_cost",
    "storage_violation_below_cost",
    "filling_target_violation_cost",
    "turbined_violation_below_cost",
    "outflow_violation_below_cost",
    "outflow_violation_above_cost",
    "generation_violation_below_cost",
    "evaporation_violation_cost",
    "water_withdrawal_violation_cost",
    "water_withdrawal_violation_pos_cost",
    "water_withdrawal_violation_neg_cost",
    "evaporation_violation_pos_cost",
    "evaporation_violation_neg_cost",
    "inflow_nonnegativity_cost",
)

# Names are those of the fields of core.case.ScenarioTables.
SCENARIO_TABLES: Mapping[str, TableFormat] = {
    "inflow_seasonal_stats": _table(
        INFLOW_STATS_FILE,
        _ids("hydro_id", "stage_id") + _numbers("mean_m3s", "std_m3s"),
        "hydro_id",
        "stage_id",
    ),
    "inflow_ar_coefficients": _table(
        INFLOW_COEFFICIENTS_FILE,
        _ids("hydro_id", "stage_id", "lag") + _numbers("coefficient") + _overrides("residual_std_ratio"),
        "hydro_id",
        "stage_id",
        "lag",
    ),
    "inflow_annual_component": _table(
        INFLOW_ANNUAL_FILE,
        _ids("hydro_id", "stage_id") + _numbers("annual_coefficient", "annual_mean_m3s", "annual_std_m3s"),
        "hydro_id",
        "stage_id",
    ),
    "inflow_history": _table(
        HISTORY_FILE,
        _ids("hydro_id") + _of_kind("date", "start_date", "end_date") + _numbers("value_m3s"),
        "hydro_id",
        "start_date",
        "end_date",
    ),
    "load_seasonal_stats": _table(
        LOAD_STATS_FILE,
        _ids("bus_id", "stage_id") + _numbers("mean_mw", "std_mw"),
        "bus_id",
        "stage_id",
    ),
    "non_controllable_stats": _table(
        SOURCE_STATS_FILE,
        _ids("ncs_id", "stage_id") + _numbers("mean", "std"),
        "ncs_id",
        "stage_id",
    ),
    "external_inflow_scenarios": _table(
        EXTERNAL_INFLOWS_FILE,
        _ids("stage_id", "scenario_id", "hydro_id") + _numbers("value_m3s"),
        "stage_id",
        "scenario_id",
        "hydro_id",
    ),
    "external_load_scenarios": _table(
        EXTERNAL_LOADS_FILE,
        _ids("stage_id", "scenario_id", "bus_id") + _numbers("value_mw"),
        "stage_id",
        "scenario_id",
        "bus_id",
    ),
    "external_ncs_scenarios": _table(
        EXTERNAL_SOURCES_FILE,
        _ids("stage_id", "scenario_id", "ncs_id") + _numbers("availability_factor"),
        "stage_id",
        "scenario_id",
        "ncs_id",
    ),
    "noise_openings": _table(
        OPENINGS_FILE,
        _ids("stage_id") + _of_kind("index", "opening_index", "entity_index") + _numbers("value"),
        "stage_id",
        "opening_index",
        "entity_index",
    ),
}

# Names are those of the fields of core.case.OverrideTables.
OVERRIDE_TABLES: Mapping[str, TableFormat] = {
    "thermal_bounds": _bounds(
        "thermal_bounds", ("thermal_id",), "min_generation_mw", "max_generation_mw", "cost_per_mwh"
    ),
    "hydro_bounds": _bounds(
        "hydro_bounds",
        ("hydro_id",),
        *TURBINES,
        "min_storage_hm3",
        "max_storage_hm3",
        "min_outflow_m3s",
        "max_outflow_m3s",
        "min_diversion_m3s",
        "max_diversion_m3s",
        "min_spillage_m3s",
        "max_spillage_m3s",
        "filling_min_rate_m3s",
        "water_withdrawal_m3s",
    ),
    "hydro_unit_group_bounds": _bounds("hydro_unit_group_bounds", ("hydro_id", "hydro_unit_group_id"), *TURBINES),
    "line_bounds": _bounds("line_bounds", ("line_id",), "direct_mw", "reverse_mw"),
    "pumping_bounds": _bounds("pumping_bounds", ("pumping_station_id",), "min_m3s", "max_m3s"),
    "contract_bounds": _bounds("contract_bounds", ("contract_id",), "min_mw", "max_mw", "price_per_mwh"),
    "ncs_bounds": _table(
        SOURCE_BOUNDS_FILE,
        _ids("ncs_id", "stage_id") + _numbers("available_generation_mw"),
        "ncs_id",
        "stage_id",
    ),
    "penalty_overrides_bus": _prices("bus", "bus_id", "excess_cost"),
    "penalty_overrides_line": _prices("line", "line_id", "exchange_cost"),
    "penalty_overrides_hydro": _prices("hydro", "hydro_id", *HYDRO_COSTS),
    "penalty_overrides_ncs": _prices("ncs", "ncs_id", "curtailment_cost"),
}

# Names are those of the fields of core.production.ProductionModels.
PRODUCTION_TABLES: Mapping[str, TableFormat] = {
    "energy_productivity": _table(
        ENERGY_PRODUCTIVITY_FILE,
        (
            *_ids("hydro_id"),
            Column("stage_id", "id", is_nullable=True),
            Column("equivalent_productivity_mw_per_m3s", "number", is_nullable=True),
            Column("reference_outflow_m3s", "number", is_nullable=True),
            Column("specific_productivity_mw_per_m3s_per_m", "number", is_nullable=True),
        ),
        "hydro_id",
        "stage_id",
    ),
    "hyperplanes": _table(
        HYPERPLANES_FILE,
        (
            *_ids("hydro_id", "plane_id"),
            _optional_id("stage_id"),
            *_numbers("gamma_0", "gamma_v", "gamma_q", "gamma_s"),
            *_overrides("kappa"),
        ),
        "hydro_id",
        "stage_id",
        "plane_id",
    ),
    "geometry": _table(
        GEOMETRY_FILE,
        _ids("hydro_id") + _numbers("volume_hm3", "height_m", "area_km2"),
        "hydro_id",
        "volume_hm3",
    ),
    "tailrace_curves": _table(
        TAILRACE_FILE,
        _ids("hydro_id", "family_id", "segment_id")
        + _numbers("downstream_reference_level_m", "outflow_min_m3s", "outflow_max_m3s")
        + _numbers(*(f"coefficient_{power}" for power in range(5))),
        "hydro_id",
        "family_id",
        "segment_id",
    ),
}

INTEGRATED = Column("integrated_equivalent_productivity_mw_per_m3s", "number", is_nullable=True)


def production_tables(version: FormatVersion) -> Mapping[str, TableFormat]:
    """Return the tables of production models: format 0.19 has one more column of energy productivities."""
    if version == "0.18":
        return PRODUCTION_TABLES
    table = PRODUCTION_TABLES["energy_productivity"]
    return {**PRODUCTION_TABLES, "energy_productivity": replace(table, columns=(*table.columns, INTEGRATED))}
