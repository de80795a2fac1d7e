"""An official deck of today through cobre-python: every table that is computed, and every solve of a training.

The deck is the first year of December 2025. Three things in which cobre-python errs are taken out of it, so that both
programs have the same LPs: the minimum outflow of a plant that does not exist yet (charged there), planes of a plant
whose machines come later (they forbid it to spill there), and minimum turbined flows by stage (ignored there).
"""

import json
import shutil
import subprocess
from pathlib import Path

import highspy
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer import TIMEOUT_S, peer_python
from published_data import DECKS

from cobre.io.case import load_case
from cobre.io.policies.cobre_python_policy import IDENTIFIER, FlatTable, read_cobre_python_policy
from cobre.policy.object import state_names
from cobre.sddp.hydro_models.energy_productivity import EnergyProductivity
from cobre.sddp.hydro_models.reservoir import evaporation_line, geometry_by_hydro
from cobre.sddp.problem.openings import realise
from cobre.solver.program import StageProgram
from cobre.stochastic.inflows import describe_inflows
from cobre.study.output.exports import fpha_tables, stochastic_tables
from cobre.study.preparation.prepare import prepare

TOLERANCE = 1e-9


class HighsStage:
    """The LP of one stage, kept in HiGHS from solve to solve."""

    def __init__(self, program: StageProgram) -> None:
        self._program, self._cuts = program, []
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.cost), len(program.row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.column_lower, program.column_upper
        lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = program.row_start, program.column_index
        lp.a_matrix_.value_ = program.value
        self._highs = highspy.Highs()
        self._highs.silent()
        self._highs.setOptionValue("threads", 1)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._highs.setOptionValue(name, TOLERANCE)
        self._highs.passModel(lp)

    def add_cut(self, intercept: float, coefficients: np.ndarray) -> None:
        """Add future cost >= intercept + coefficients @ outgoing state, in scaled money."""
        program = self._program
        decided = coefficients[: program.num_decided] * program.column_scale[program.state_column]
        used = np.flatnonzero(decided)
        columns = np.concatenate([[program.future_cost], program.state_column[used]]).astype(np.int32)
        values = np.concatenate([[1.0], -decided[used]])
        self._highs.addRow(intercept, highspy.kHighsInf, len(columns), columns, values)
        self._cuts.append((intercept, coefficients[program.num_decided :]))

    def value(self, state: np.ndarray, inflow_m3s: np.ndarray, load_mw: np.ndarray, available: np.ndarray) -> float:
        """Return the optimal cost, scaled, of this stage and its future."""
        program = self._program
        inflow = program.realised_inflow(state, inflow_m3s)
        first, lags = program.num_decided, program.num_lags * program.num_hydros
        inputs = np.concatenate([state[:first], inflow, state[first + lags :]])
        moved = np.zeros(len(program.row_lower))
        np.add.at(moved, program.input_row, program.input_value * inputs[program.input_index])
        np.add.at(moved, program.load_row, program.load_factor * load_mw[program.load_bus])
        rest = program.next_states(state[None], np.zeros((1, first)), inflow[None])[0, first:]
        cuts = [intercept + coefficients @ rest for intercept, coefficients in self._cuts]
        lower = np.concatenate([program.row_lower + moved, cuts])
        upper = np.concatenate([program.row_upper + moved, np.full(len(cuts), highspy.kHighsInf)])
        self._highs.changeRowsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)
        most = program.source_factor * available[program.source_index]
        least = np.where(program.source_is_pinned, most, 0.0)
        self._highs.changeColsBounds(len(most), program.source_column, least, most)
        self._highs.run()
        assert self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(self._highs.getInfo().objective_function_value)


DECK = DECKS / "pmo_2025_12_first_12"
FILLING_PLANT, FIRST_STAGE_OF_PLANT = 132, 11
OVERRIDES = {
    "training.selection.forward_passes": 1,
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 1}],
    "simulation.selection.num_scenarios": 1,
    "exports.states": True,
    "exports.stochastic": True,
    "exports.fpha_deviation_points": True,
}
RUN = """
import cobre, json, sys
cobre.run.run(sys.argv[1], sys.argv[2], threads=1, config_overrides=json.loads(sys.argv[3]))
"""
STATES = 3  # field number of a visited-states file: all states, one after another
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(6 * TIMEOUT_S),
    pytest.mark.skipif(not DECK.exists(), reason=f"the deck {DECK.name} is not here: COBRE_DECKS says where it is"),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Return the deck that both programs understand alike, prepared here, and the output of cobre-python's run."""
    python = peer_python()
    folder = tmp_path_factory.mktemp("deck")
    case, output = folder / "case", folder / "output"
    shutil.copytree(DECK, case, copy_function=shutil.copyfile)
    for path in [case, *case.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    _without_known_differences(case)
    command = [python, "-I", "-c", RUN, str(case), str(output), json.dumps(OVERRIDES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return prepare(load_case(case, OVERRIDES)), output


def _without_known_differences(case: Path) -> None:
    file = case / "system" / "hydros.json"
    document = json.loads(file.read_text())
    for hydro in document["hydros"]:
        if hydro["id"] == FILLING_PLANT:
            hydro["outflow"]["min_outflow_m3s"] = 0.0
    file.write_text(json.dumps(document))
    bounds = case / "constraints" / "hydro_bounds.parquet"
    table = pq.read_table(bounds)
    rows = table.to_pylist()
    for row in rows:
        row["min_turbined_m3s"] = None
        if row["hydro_id"] == FILLING_PLANT and row["stage_id"] >= FIRST_STAGE_OF_PLANT:
            row["max_turbined_m3s"] = row["max_generation_mw"] = None
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), bounds, compression="zstd")


def keyed(table: pa.Table, keys: tuple[str, ...], values: tuple[str, ...]) -> dict[tuple, np.ndarray]:
    """Return rows of values by key, sorted by value: planes have no order of their own."""
    found: dict[tuple, list] = {}
    rows = zip(*(table[name].to_pylist() for name in (*keys, *values)), strict=True)
    for row in rows:
        found.setdefault(row[: len(keys)], []).append(row[len(keys) :])
    return {key: np.array(sorted(rows)) for key, rows in found.items()}


def check_tables(ours: pa.Table, theirs: pa.Table, keys: tuple[str, ...], values: tuple[str, ...], abs_: float) -> int:
    """Compare every key of ours, to 1e-9 of the largest number of a column; return how many keys were compared."""
    mine, its = keyed(ours, keys, values), keyed(theirs, keys, values)
    assert set(mine) <= set(its)
    scale = np.abs(np.concatenate(list(its.values()))).max(axis=0)
    for key, rows in mine.items():
        assert rows.shape == its[key].shape, key
        assert (np.abs(rows - its[key]) <= abs_ * scale).all(), (key, rows, its[key])
    return len(mine)


def test_exact_production_points_match_peer(both):
    study, output = both
    theirs = pq.read_table(output / "hydro_models" / "fpha_deviation_points.parquet")
    ours = fpha_tables(study.case)["fpha_deviation_points"]
    names = ("v", "q", "fph_exact", "fpha_fitted")
    assert check_tables(ours, theirs, ("hydro_id", "stage_id"), names, 1e-9) > 1800


def test_production_planes_match_peer(both):
    """Compare planes as functions: some plants have planes there that repeat one another up to rounding."""
    study, output = both
    names = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")
    theirs = keyed(pq.read_table(output / "hydro_models" / "fpha_hyperplanes.parquet"), ("hydro_id", "stage_id"), names)
    ours = keyed(fpha_tables(study.case)["fpha_hyperplanes"], ("hydro_id", "stage_id"), names)
    reach = {hydro.id: _reach(study.case, hydro) for hydro in study.case.system.hydros}
    assert len(ours) > 1800
    for (hydro_id, stage_id), planes in ours.items():
        mine, its = (rows * reach[hydro_id] for rows in (planes, theirs[hydro_id, stage_id]))
        gaps = np.abs(mine[:, None] - its[None]).max(axis=2)
        assert gaps.min(axis=1).max() <= 1e-9 * np.abs(its).max(), (hydro_id, stage_id)
        assert gaps.min(axis=0).max() <= 1e-9 * np.abs(its).max(), (hydro_id, stage_id)


def _reach(case, hydro) -> np.ndarray:
    """Return the largest factors of the columns of planes: 1, volume, turbined and spilled flow."""
    flow = hydro.generation.max_turbined_m3s
    return np.array([1.0, hydro.reservoir.max_storage_hm3, flow, 2.0 * flow])


def test_evaporation_and_productivities_match_peer(both):
    study, output = both
    case = study.case
    geometry = geometry_by_hydro(case.production.geometry)
    hydros, stages = ({one.id: one for one in found} for found in (case.system.hydros, case.horizon.stages))
    for row in pq.read_table(output / "hydro_models" / "evaporation_models.parquet").to_pylist():
        line = evaporation_line(hydros[row["hydro_id"]], geometry.get(row["hydro_id"]), stages[row["stage_id"]])
        expected = (row["intercept_m3s"], row["volume_slope_m3s_per_hm3"])
        assert (line.k0, line.kv) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    found = EnergyProductivity(case, geometry)
    columns = {
        "equivalent_productivity_mw_per_m3s": found.equivalent,
        "accumulated_productivity_mw_per_m3s": found.accumulated,
        "integrated_equivalent_productivity_mw_per_m3s": found.integrated_equivalent,
        "integrated_accumulated_productivity_mw_per_m3s": found.integrated_accumulated,
    }
    table = pq.read_table(output / "simulation" / "hydros" / "scenario_id=0000" / "data.parquet")
    for row in {(row["hydro_id"], row["stage_id"]): row for row in table.to_pylist()}.values():
        for name, compute in columns.items():
            assert compute(row["hydro_id"], stages[row["stage_id"]]) == pytest.approx(row[name], rel=1e-9), name


def test_inflow_models_match_peer(both):
    """Compare statistics, coefficients with the yearly component, and correlations."""
    study, output = both
    found = describe_inflows(study.case)
    ours, folder = stochastic_tables(study.case, found, study.noise), output / "stochastic"
    for name, keys, values in (
        ("inflow_seasonal_stats", ("hydro_id", "stage_id"), ("mean_m3s", "std_m3s")),
        ("inflow_ar_coefficients", ("hydro_id", "stage_id", "lag"), ("coefficient",)),
        (
            "inflow_annual_component",
            ("hydro_id", "stage_id"),
            ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s"),
        ),
    ):
        assert check_tables(ours[name], pq.read_table(folder / f"{name}.parquet"), keys, values, 1e-9) > 1800
    document = json.loads((folder / "correlation.json").read_text())
    for name, groups in found.correlation.profiles.items():
        [group] = document["profiles"][name]["correlation_groups"]
        assert np.abs(groups[0].matrix - np.array(group["matrix"])).max() < 1e-12
    # Matrices are singular: a rounding of 1e-15 moves their root, and the openings with it, by up to its square root.
    openings = ("stage_id", "opening_index", "entity_index")
    theirs = pq.read_table(folder / "noise_openings.parquet")
    assert check_tables(ours["noise_openings"], theirs, openings, ("value",), 1e-7) == theirs.num_rows


def test_lp_values_of_an_iteration_match_peer(both):
    """Compare the bound from its cuts, and each cut at its trial point: values of all LPs to 1e-7."""
    study, output = both
    problem, policy = study.problem, read_cobre_python_policy(output / "policy" / "manifest.bin")
    their_names = policy.metadata.state_names
    order = [their_names.index(name) for name in state_names(study)]
    stages = [HighsStage(stage.program) for stage in problem.stages]
    for stage, cuts in zip(stages[:-1], policy.stages, strict=False):
        for intercept, coefficients in zip(cuts.intercepts, cuts.coefficients, strict=True):
            stage.add_cut(intercept, coefficients[order])
    noise = _openings(study, output)

    def value(stage: int, state: np.ndarray) -> float:
        outcome = realise(study.noise, stage, noise[stage])
        rows = zip(outcome.inflow_m3s, outcome.load_mw, outcome.availability, strict=True)
        costs = np.array([[stages[stage].value(state, *row) for row in rows]])
        return float((problem.risk[stage].weights(costs) * costs).sum())

    bound = value(0, problem.initial_state) * problem.cost_scale
    assert bound == pytest.approx(policy.metadata.facts["lower_bound"], rel=1e-7)
    for stage in range(problem.num_stages - 1):
        content = (output / "policy" / "states" / f"{stage:03d}.bin").read_bytes()
        [state] = FlatTable.root(content, IDENTIFIER).vector(STATES, "<f8").reshape(-1, len(their_names))
        cuts = policy.stages[stage]
        cut = cuts.intercepts[-1] + cuts.coefficients[-1] @ state
        assert cut == pytest.approx(value(stage + 1, state[order]), rel=1e-7), stage


def _openings(study, output: Path) -> list[np.ndarray]:
    """Return the openings of cobre-python, which differ in the eighth digit."""
    table = pq.read_table(output / "stochastic" / "noise_openings.parquet")
    stage, opening, entity, value = (table[name].to_numpy() for name in table.schema.names)
    found = [np.zeros_like(values) for values in study.noise.openings]
    for number, values in enumerate(found):
        rows = stage == study.case.horizon.stages[number].id
        values[opening[rows], entity[rows]] = value[rows]
    return found
