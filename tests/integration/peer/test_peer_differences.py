"""Small rules that both programs follow, each with its own case."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer import TIMEOUT_S, peer_python
from small_system import SmallHydro, SmallSystem, SmallThermal, write_case
from test_peer_tailrace import change

STAGES = 3
# Runs every folder and prints tables by name; the same script for both programs.
RUN_ALL = """
import cobre, json, sys
found = {}
overrides = {"simulation.enabled": True, "simulation.selection": {"method": "sampled", "num_scenarios": 2}}
for folder in sys.argv[2:]:
    out, bounds = folder + sys.argv[1], []
    cobre.run.run(folder, out, threads=1, config_overrides=overrides,
                  on_iteration=lambda event: bounds.append(event["lower_bound"]))
    tables = {"bounds": bounds}
    for name in ("violations/generic", "costs", "buses"):
        try:
            tables[name] = cobre.results.load_simulation_arrow(out, name).to_pydict()
        except Exception as error:
            tables[name] = str(error)
    found[folder] = tables
print(json.dumps(found))
"""


def system(hydros=1, loads=(100.0, 100.0, 100.0)) -> SmallSystem:
    upper = SmallHydro(0, None, 0.0, 200.0, 50.0, 120.0, 1.0, 0.0, 60.0, 0.0)
    return SmallSystem(
        loads=tuple((load,) for load in loads),
        noise=(((0.0,) * hydros,),) * STAGES,
        hours=(730.0,),
        load_factors=(1.0,),
        hydros=(upper,) * hydros,
        thermals=(SmallThermal(0, 100.0, 0.0, 50.0),),
    )


def bounded(lower: float | None, upper: float | None):
    """Bound turbined water, with a slack."""

    def write(folder: Path) -> None:
        write_case(folder, system(), 1, 4)
        (folder / "constraints").mkdir(exist_ok=True)
        slack = {"enabled": True, "penalty": 5.0}
        constraint = {"id": 0, "name": "flow", "expression": "hydro_turbined(0)", "slack": slack}
        document = json.dumps({"constraints": [constraint]})
        (folder / "constraints" / "generic_constraints.json").write_text(document)
        columns = {"constraint_id": pa.array([0] * STAGES, pa.int32()), "stage_id": pa.array(range(STAGES), pa.int32())}
        columns |= {"bound_lower": pa.array([lower] * STAGES, pa.float64())}
        columns |= {"bound_upper": pa.array([upper] * STAGES, pa.float64())}
        path = folder / "constraints" / "generic_constraint_bounds.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd")

    return write


def diverted(folder: Path) -> None:
    """Divert water to another river, at a price."""
    write_case(folder, system(hydros=2), 1, 4)

    def divert(file: dict) -> None:
        file["hydros"][0]["diversion"] = {"downstream_id": 1, "max_flow_m3s": 20.0}
        file["hydros"][0]["penalties"] = {"diversion_cost": 0.7, "spillage_cost": 0.3}

    change(folder / "system" / "hydros.json", divert)
    (folder / "constraints").mkdir(exist_ok=True)
    columns = {"hydro_id": pa.array([0] * STAGES, pa.int32()), "stage_id": pa.array(range(STAGES), pa.int32())}
    columns["min_diversion_m3s"] = pa.array([15.0] * STAGES, pa.float64())
    pq.write_table(pa.table(columns), folder / "constraints" / "hydro_bounds.parquet", compression="zstd")


def feeding(folder: Path) -> None:
    """Write a case with a negative load that is certain."""
    write_case(folder, system(loads=(-30.0, 100.0, 100.0)), 1, 4)


def stalling(iterations: int, tolerance: float):
    def write(folder: Path) -> None:
        write_case(folder, system(), 1, 12)
        rule = {"type": "bound_stalling", "iterations": iterations, "tolerance": tolerance}
        change(folder / "config.json", lambda file: file["training"]["stopping_rules"].append(rule))

    return write


CASES = {
    "an upper bound alone": bounded(None, 10.0),
    "a lower bound alone": bounded(200.0, None),
    "above a band": bounded(5.0, 10.0),
    "below a band": bounded(200.0, 210.0),
    "above an equation": bounded(10.0, 10.0),
    "a diversion": diverted,
    "a negative load": feeding,
    "stalling over two": stalling(2, 1e-3),
    "stalling over three": stalling(3, 1e-3),
    "stalling over five": stalling(5, 1e-6),
}


@pytest.fixture(scope="module")
def both():
    python = peer_python()
    with tempfile.TemporaryDirectory() as parent:
        folders = {name: Path(parent) / f"case_{number}" for number, name in enumerate(CASES)}
        for name, folder in folders.items():
            CASES[name](folder)
        found = []
        for side, interpreter, flags in (("_theirs", python, ["-I"]), ("_ours", sys.executable, [])):
            command = [interpreter, *flags, "-c", RUN_ALL, side, *map(str, folders.values())]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            assert done.returncode == 0, done.stderr
            found.append(json.loads(done.stdout.splitlines()[-1]))
        yield {name: tuple(side[str(folder)] for side in found) for name, folder in folders.items()}


@pytest.mark.parametrize("name", CASES)
def test_bounds_match_peer(both, name):
    theirs, ours = both[name]
    assert len(ours["bounds"]) == len(theirs["bounds"])
    assert ours["bounds"] == pytest.approx(theirs["bounds"], rel=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("a lower", "an upper", "above", "below"))])
def test_slacks_match_peer(both, name):
    theirs, ours = (side["violations/generic"] for side in both[name])
    for column in ("stage_id", "constraint_id", "slack_value", "slack_cost"):
        assert ours[column] == pytest.approx(theirs[column], rel=1e-9, abs=1e-6), column


def test_diversion_cost_is_part_of_spillage_cost(both):
    theirs, ours = (side["costs"] for side in both["a diversion"])
    assert min(theirs["spillage_cost"]) > 0.0
    for column in ("spillage_cost", "turbined_cost", "immediate_cost"):
        assert ours[column] == pytest.approx(theirs[column], rel=1e-9)


def test_negative_load_feeds_its_bus(both):
    theirs, ours = (side["buses"] for side in both["a negative load"])
    assert min(theirs["load_mw"]) == -30.0
    for column in ("load_mw", "excess_mw", "deficit_mw"):
        assert ours[column] == pytest.approx(theirs[column], abs=1e-6)
