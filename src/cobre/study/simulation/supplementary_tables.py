"""Tables that accompany those of a simulation: entities by stage, past inflows, paths of a tree, costs of scenarios.

What does not depend on scenarios (stored energy, productivities, states of operation, lagged inflows) is written here
once, and not repeated scenario after scenario in large files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats
from cobre.core.case import Case
from cobre.core.entities import WithService, is_in_service
from cobre.core.hydro import Hydro
from cobre.core.stage_data import StageData
from cobre.core.temporal import Stage
from cobre.io.storage.arrow_columns import column_of, table_of
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity, NoProductivityError
from cobre.sddp.hydro_models.reservoir import geometry_by_hydro
from cobre.sddp.problem.problem import PreparedStudy

if TYPE_CHECKING:
    import pyarrow as pa


ENTITY_STAGES = "entity_stages"
INITIAL_LAGS = "initial_inflow_lags"
LAG_STEPS = "inflow_lag_steps"  # only where seasons and stages differ
TREE_PATHS = "tree_paths"  # only over a tree of nodes
SCENARIO_COSTS = "scenario_costs"  # only where scenarios are drawn from the openings
SUPPLEMENTARY_TABLES = (ENTITY_STAGES, INITIAL_LAGS, LAG_STEPS, TREE_PATHS, SCENARIO_COSTS)
DEACTIVATED, OPERATING = 0, 2
HYDRO_NUMBERS = (
    "dead_storage_hm3",
    "min_storage_hm3",
    "max_storage_hm3",
    "equivalent_productivity_mw_per_m3s",
    "accumulated_productivity_mw_per_m3s",
    "integrated_equivalent_productivity_mw_per_m3s",
    "integrated_accumulated_productivity_mw_per_m3s",
)


def supplementary_tables(
    study: PreparedStudy, paths: NDArray[np.int32] | None, costs: Floats, controlled: Floats | None
) -> "dict[str, pa.Table]":
    """Return the tables that accompany those of a simulation, by name.

    paths: the tree path of each scenario, as in `tree_paths`. costs, controlled: of scenarios, as in `scenario_costs`.
    """
    tables = {ENTITY_STAGES: entity_stages(study), INITIAL_LAGS: initial_lags(study)}
    if study.noise.lag_steps is not None:
        tables[LAG_STEPS] = lag_steps(study)
    if controlled is not None:
        tables[SCENARIO_COSTS] = scenario_costs(costs, controlled)
    if study.problem.tree is not None:
        tables[TREE_PATHS] = tree_paths(study, paths)
    return tables


def entity_stages(study: PreparedStudy) -> "pa.Table":
    """Return a row for each entity in each stage; numbers of reservoirs are null elsewhere and where unknown."""
    import pyarrow as pa

    energy = EnergyProductivity(study.case, geometry_by_hydro(study.case.production.geometry))
    rows = [row for lp in study.problem.stages for row in _rows(study.case, lp.plan.data, energy)]
    kinds = {"table": pa.string(), "entity_id": pa.int32(), "stage_id": pa.int32(), "operative_state_code": pa.int8()}
    kinds |= dict.fromkeys(("stage_hours", *HYDRO_NUMBERS), pa.float64())
    return table_of({name: column_of([row.get(name) for row in rows], kind) for name, kind in kinds.items()})


def initial_lags(study: PreparedStudy) -> "pa.Table":
    """Return the inflows before the first stage that the initial state holds; lag 0 is the most recent one."""
    hydros, orders = len(study.case.system.hydros), study.noise.max_order
    ids = np.array([hydro.id for hydro in study.case.system.hydros], np.int32)
    values = study.problem.initial_lags
    return table_of(
        {
            "hydro_id": np.repeat(ids, orders),
            "lag_index": np.tile(np.arange(orders, dtype=np.int32), hydros),
            "inflow_m3s": np.ascontiguousarray(values.T).reshape(-1),
        }
    )


def tree_paths(study: PreparedStudy, paths: NDArray[np.int32] | None) -> "pa.Table":
    """Return the node of each scenario at each stage. paths: the tree path of each scenario; None: its own number.

    probability: of the scenario; null where paths were drawn.
    """
    tree = study.problem.tree
    if tree is None:
        raise ValueError("tree_paths: the study has no tree")
    nodes = tree.ids[tree.paths() if paths is None else tree.paths()[paths]]
    stage_ids = np.array([stage.id for stage in study.case.horizon.stages], np.int32)
    shares = np.full(len(nodes), np.nan) if paths is not None else tree.path_probabilities()
    probabilities = np.repeat(shares, len(stage_ids))
    return table_of(
        {
            "scenario_id": np.repeat(np.arange(len(nodes), dtype=np.int32), len(stage_ids)),
            "stage_id": np.tile(stage_ids, len(nodes)),
            "node_id": nodes.reshape(-1),
            "probability": column_of(probabilities, is_null=np.isnan(probabilities)),
        }
    )


def scenario_costs(costs: Floats, controlled: Floats) -> "pa.Table":
    """Return each scenario's cost, $ of the first stage's money, as sampled and controlled for the openings drawn."""
    ids = np.arange(len(costs), dtype=np.int32)
    return table_of({"scenario_id": ids, "cost": costs, "controlled_cost": controlled})


def lag_steps(study: PreparedStudy) -> "pa.Table":
    """Return how lags that are means of seasons change at each stage: their predecessor (-1: none) and their share."""
    steps = [study.noise.lag_changes(stage) for stage in range(study.noise.num_stages)]
    orders = study.noise.max_order
    return table_of(
        {
            "stage_id": np.repeat(np.array([stage.id for stage in study.case.horizon.stages], np.int32), orders),
            "lag_index": np.tile(np.arange(orders, dtype=np.int32), len(steps)),
            "taken_from": np.concatenate([taken_from for taken_from, _ in steps]),
            "inflow_share": np.concatenate([share for _, share in steps]),
        }
    )


def _rows(case: Case, data: StageData, energy: EnergyProductivity) -> Iterator[Mapping[str, Any]]:
    hours = float(data.hours.sum())
    reservoirs = _reservoirs(case, data, energy)
    for table, entities in _classes(case).items():
        for index, entity in enumerate(entities):
            state = OPERATING if is_in_service(entity, data.stage.id) else DEACTIVATED
            row = {"table": table, "entity_id": entity.id, "stage_id": data.stage.id, "operative_state_code": state}
            numbers = {name: values[index] for name, values in reservoirs.items()} if table == "hydros" else {}
            yield row | {"stage_hours": hours} | numbers


def _classes(case: Case) -> Mapping[str, Sequence[Any]]:
    """Return entities of each class, by the name of their table of results."""
    system = case.system
    classes: Mapping[str, Sequence[WithService]] = {
        "hydros": system.hydros,
        "thermals": system.thermals,
        "exchanges": system.lines,
        "non_controllables": system.non_controllable_sources,
        "contracts": system.energy_contracts,
        "pumping_stations": system.pumping_stations,
    }
    return classes


def _reservoirs(case: Case, data: StageData, energy: EnergyProductivity) -> dict[str, list[float | None]]:
    """Return numbers by the names of `HYDRO_NUMBERS`, in canonical order."""
    hydros = case.system.hydros
    productivities = _productivities(hydros, data.stage, energy.equivalent)
    integrated = _productivities(hydros, data.stage, energy.integrated_equivalent)
    columns = (
        np.array([hydro.reservoir.min_storage_hm3 for hydro in hydros]),
        data.hydro.min_storage_hm3,
        data.hydro.max_storage_hm3,
        productivities,
        _down_the_cascade(hydros, productivities),
        integrated,
        _down_the_cascade(hydros, integrated),
    )
    return {
        name: [None if np.isnan(value) else float(value) for value in values]
        for name, values in zip(HYDRO_NUMBERS, columns, strict=True)
    }


def _productivities(hydros: Sequence[Hydro], stage: Stage, find: Callable[[int, Stage], float]) -> Floats:
    """Return productivities; NaN where no file gives one: the LP does not need them."""

    def found(hydro: Hydro) -> float:
        try:
            return find(hydro.id, stage)
        except NoProductivityError:
            return float("nan")

    return np.array([found(hydro) for hydro in hydros])


def _down_the_cascade(hydros: Sequence[Hydro], productivities: Floats) -> Floats:
    """Sum over a plant and all plants downstream of it, the plant itself first."""
    index_of = {hydro.id: at for at, hydro in enumerate(hydros)}
    total = np.zeros(len(hydros))
    for at, hydro in enumerate(hydros):
        step: Hydro | None = hydro
        while step is not None:
            total[at] += productivities[index_of[step.id]]
            step = None if step.downstream_id is None else hydros[index_of[step.downstream_id]]
    return total
