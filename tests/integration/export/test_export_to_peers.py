"""Exported runs read by their target programs: both peers and their bridges, from PyPI."""

import csv
import json
import shutil
import subprocess
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bridges import bridge_environment, repaired_deck, shared_deck
from cli_runs import ONE_PROCESS, cobre
from peer import PROGRAM, novomodelo_python, peer_python
from studies import QUICK_CASE, SLOW_CASE, small_copy

START = {"operational_start_date": "2030-01-01"}
SELECTION = {"method": "lml1", "check_frequency": 1}  # deselects most cuts
EIGHT_ITERATIONS = [{"type": "iteration_limit", "limit": 8}]


def write_whole_system(folder):
    """Write two reservoirs, a bus behind a line, wind, a pump, two contracts, and a floor for thermal plants."""
    case = small_copy(QUICK_CASE, folder, stopping_rules=EIGHT_ITERATIONS, cut_selection={"selection": SELECTION})
    buses = json.loads((case / "system" / "buses.json").read_text())
    buses["buses"].append({"id": 1, "name": "Plain", **START})
    line = {"id": 0, "name": "Valley to Plain", **START, "source_bus_id": 0, "target_bus_id": 1}
    line["capacity"] = {"direct_mw": 80.0, "reverse_mw": 60.0}
    wind = {"id": 0, "name": "Wind", **START, "bus_id": 1, "max_generation_mw": 40.0}
    pump = {"id": 0, "name": "Pump", **START, "bus_id": 0, "source_hydro_id": 1, "destination_hydro_id": 0}
    pump |= {"consumption_mw_per_m3s": 1.2, "flow": {"min_m3s": 0.0, "max_m3s": 5.0}}
    contracts = [
        {"id": 0, "name": "Bought", **START, "bus_id": 1, "type": "import", "price_per_mwh": 90.0},
        {"id": 1, "name": "Sold", **START, "bus_id": 0, "type": "export", "price_per_mwh": -20.0},
    ]
    for contract in contracts:
        contract["limits"] = {"min_mw": 0.0, "max_mw": 15.0}
    floor = {"id": 0, "name": "floor", "expression": "thermal_generation(0) + thermal_generation(1)"}
    floor["slack"] = {"enabled": True, "penalty": 3000.0}
    documents = {
        "system/buses.json": buses,
        "system/lines.json": {"lines": [line]},
        "system/non_controllable_sources.json": {"non_controllable_sources": [wind]},
        "system/pumping_stations.json": {"pumping_stations": [pump]},
        "system/energy_contracts.json": {"contracts": contracts},
        "constraints/generic_constraints.json": {"constraints": [floor]},
    }
    (case / "constraints").mkdir(exist_ok=True)
    for name, content in documents.items():
        (case / name).write_text(json.dumps(content))
    _write_tables(case)
    return case


def _write_tables(case):
    bounds = {"constraint_id": [0, 0], "stage_id": [0, 1], "block_id": [None, None]}
    _write(case / "constraints" / "generic_constraint_bounds.parquet", bounds, bound_lower=[300.0, 650.0])
    limits = {"thermal_id": [0, 0], "stage_id": [0, 2], "block_id": [1, None]}
    _write(case / "constraints" / "thermal_bounds.parquet", limits, max_generation_mw=[150.0, 120.0])
    loads = pq.read_table(case / "scenarios" / "load_seasonal_stats.parquet")
    more = {"bus_id": [1] * 12, "stage_id": list(range(12))}
    _write(case / "scenarios" / "more.parquet", more, mean_mw=[30.0] * 12, std_mw=[0.0] * 12)
    both = pa.concat_tables([loads, pq.read_table(case / "scenarios" / "more.parquet").select(loads.column_names)])
    pq.write_table(both, case / "scenarios" / "load_seasonal_stats.parquet", compression="zstd")
    (case / "scenarios" / "more.parquet").unlink()


def _write(path, ids, **numbers):
    columns = {name: pa.array(values, pa.int32()) for name, values in ids.items()}
    columns |= {name: pa.array(values, pa.float64()) for name, values in numbers.items()}
    pq.write_table(pa.table(columns), path, compression="zstd")


pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
LIMIT_S = 900
FEW = [{"type": "iteration_limit", "limit": 4}]
SIMULATE = PROGRAM.with_name("peer_policy.py")
RUN = "import sys, {0}; {0}.run.run(sys.argv[1], output_dir=sys.argv[2])"
PROGRAMS = {"cobre-python": (peer_python, "cobre"), "novomodelo": (novomodelo_python, "novomodelo")}
# Counted by them and not by us: null here.
NOT_COUNTED = ("training/solver", "training/timing", "simulation/solver")
# Only the peers have LP scaling, user constraints and counts of cut selection (see the how-to).
NOT_OURS = {
    "training/scaling_report.json",
    "generic_constraints/resolved_echo.parquet",
    "training/cut_selection/iterations.parquet",
}


@pytest.fixture(scope="module", params=["two_reservoirs", "four_regions", "whole_system"])
def exported(request, tmp_path_factory):
    """Run a case and export it for both programs; return the case and the folder."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "whole_system":
        case = write_whole_system(folder)
    else:
        case = small_copy({c.name: c for c in (QUICK_CASE, SLOW_CASE)}[request.param], folder, stopping_rules=FEW)
    run_and_export(case, folder)
    export(folder, "novomodelo")
    return case, folder


def accepted(exported, program):
    """Return the case and the exported run; skip a case of format 0.18 that novomodelo refuses."""
    case, folder = exported
    constraints = case / "constraints" / "generic_constraints.json"
    if program == "novomodelo" and constraints.exists() and "penalty_basis" not in constraints.read_text():
        pytest.skip("a case of format 0.18: novomodelo refuses constraints without penalty_basis")
    return case, folder / program


def run_and_export(case, folder):
    done = cobre("run", case, "--output", folder / "run", "--no-report", *ONE_PROCESS, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return export(folder, "cobre-python")


def export(folder, layout):
    done = cobre("export", folder / "run", "--layout", layout, "--output", folder / layout, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return folder / layout


def run_program(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_peer_simulates_exported_policy_to_same_costs(exported, tmp_path, program):
    case, folder = accepted(exported, program)
    python, module = PROGRAMS[program]
    done = run_program(python(), "-I", SIMULATE, module, case, folder, tmp_path / "theirs")
    found = json.loads(done.splitlines()[-1])
    ours = pq.read_table(folder / "simulation" / "scenario_summary.parquet")["discounted_immediate_cost"].to_pylist()
    assert found["costs"] == pytest.approx(ours, rel=1e-6)  # vertices that cost the same may lead to other states
    assert sum(found["costs"]) == pytest.approx(sum(ours), rel=1e-9)
    facts = json.loads((folder / "training" / "metadata.json").read_text())
    assert found["lower_bound"] == facts["bounds"]["final_lower_bound"]
    assert found["iterations"] == facts["iterations"]["completed"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_policy_of_a_peer_has_the_same_cost_in_both_programs(exported, tmp_path, program):
    (case, _), (python, module) = accepted(exported, program), PROGRAMS[program]
    if "lml1" in (case / "config.json").read_text():
        pytest.skip("cobre-python simulates with the cuts that selection left active, and we with all")
    run_program(python(), "-I", "-c", RUN.format(module), case, tmp_path / "theirs")
    theirs = pq.read_table(tmp_path / "theirs" / "simulation" / "scenario_summary.parquet")
    command = ("simulate", case, "--policy", tmp_path / "theirs", "--output", tmp_path / "ours", "--no-report")
    done = cobre(*command, *ONE_PROCESS, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    total = defaultdict(float)
    for row in pq.read_table(tmp_path / "ours" / "simulation" / "costs.parquet").to_pylist():
        total[row["scenario_id"]] += row["immediate_cost"] * row["discount_factor"]
    expected = theirs["discounted_immediate_cost"].to_pylist()
    assert [total[scenario] for scenario in theirs["scenario_id"].to_pylist()] == pytest.approx(expected, rel=1e-6)
    assert sum(total.values()) == pytest.approx(sum(expected), rel=1e-9)


@pytest.mark.parametrize("program", PROGRAMS)
def test_export_has_all_files_and_columns_of_a_peer_run(exported, tmp_path, program):
    case, folder = accepted(exported, program)
    python, module = PROGRAMS[program]
    run_program(python(), "-I", "-c", RUN.format(module), case, tmp_path / "theirs")
    theirs, ours = files_of(tmp_path / "theirs"), files_of(folder)
    bases = {name for name in theirs if name.startswith("policy/basis/")}
    assert theirs - ours <= bases | NOT_OURS
    assert ours <= theirs
    for name in sorted(theirs & ours):
        if name.endswith(".parquet"):
            same_columns(name, pq.read_schema(folder / name), pq.read_schema(tmp_path / "theirs" / name))
    same_dictionaries(folder / "training" / "dictionaries", tmp_path / "theirs" / "training" / "dictionaries")


def files_of(folder):
    """Return all files of one scenario."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if "scenario_id=" not in name or "scenario_id=0000" in name}


def same_columns(name, ours, theirs):
    assert [(field.name, field.type) for field in ours] == [(field.name, field.type) for field in theirs], name
    if not name.startswith(NOT_COUNTED):
        assert [field.nullable for field in ours] == [field.nullable for field in theirs], name


def same_dictionaries(ours, theirs):
    assert (ours / "entities.csv").read_text() == (theirs / "entities.csv").read_text()
    assert rows(ours / "bounds.parquet") == rows(theirs / "bounds.parquet")
    codes = [json.loads((folder / "codes.json").read_text()) for folder in (ours, theirs)]
    assert [code.pop("generated_at")[:2] for code in codes] == ["20", "20"]
    assert codes[0] == codes[1]
    known = [variables(folder / "variables.csv") for folder in (theirs, ours)]
    known[0] = {key: value for key, value in known[0].items() if key[0] != "cut_selection"}
    assert known[0] == known[1]


def rows(path):
    return sorted(map(str, pq.read_table(path).to_pylist()))


def variables(path):
    with path.open(newline="") as stream:
        return {(row["file"], row["column"]): (row["type"], row["nullable"]) for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    return bridge_environment(tmp_path_factory.mktemp("bridge"), "cobre-bridge") / "bin" / "cobre-bridge"


@pytest.mark.parametrize("program", PROGRAMS)
def test_dashboard_reads_exported_run(exported, tmp_path, program):
    name = {"cobre-python": "cobre-bridge", "novomodelo": "novomodelo-bridge"}[program]
    bridge = bridge_environment(tmp_path, name) / "bin" / name
    case, folder = exported[0], exported[1] / program
    shutil.copytree(case, tmp_path / "case")
    shutil.copytree(folder, tmp_path / "case" / "output")
    answer = json.loads(run_program(bridge, "dashboard", tmp_path / "case", "--json"))
    assert answer["status"] == "ok"
    page = (tmp_path / "case" / "dashboard.html").read_text()
    names = [entry["name"] for entry in json.loads((case / "system" / "hydros.json").read_text())["hydros"]]
    assert all(name in page for name in names)


def test_comparison_with_published_newave_results(bridge, tmp_path):
    """Write our means into NEWAVE files: the comparison must find no difference."""
    shutil.copytree(shared_deck("pmo_2018_common_12"), tmp_path / "case")
    repaired_deck(tmp_path / "deck")
    config = json.loads((tmp_path / "case" / "config.json").read_text())
    config["training"] |= {"selection": {"method": "sampled", "forward_passes": 1}}
    config["training"] |= {"stopping_rules": [{"type": "iteration_limit", "limit": 1}]}
    config["simulation"]["selection"] = {"method": "sampled", "num_scenarios": 2}
    (tmp_path / "case" / "config.json").write_text(json.dumps(config))
    run_and_export(tmp_path / "case", tmp_path).rename(tmp_path / "case" / "output")
    publish(tmp_path / "case", tmp_path / "deck")
    options = ("--format", "json", "--out-dir", tmp_path / "compared")
    run_program(bridge, "compare", "newave", tmp_path / "deck", tmp_path / "case" / "output", *options)
    found = {entry["variable"]: entry for entry in json.loads((tmp_path / "compared" / "summary.json").read_text())}
    for name in ("generation_mw", "turbined_m3s", "storage_final_hm3", "spillage_m3s"):
        assert found[name]["count"] >= 12 * 151
        assert found[name]["max_abs_diff"] <= 0.01


def publish(case, deck):
    """Write MEDIAS-USIH.CSV and MEDIAS-USIT.CSV: means over scenarios and blocks, by plant and stage."""
    documents = {
        name: json.loads((case / "system" / f"{name}.json").read_text())[name] for name in ("hydros", "thermals")
    }
    stages = json.loads((case / "stages.json").read_text())["stages"]
    hours = {(stage["id"], block["id"]): block["hours"] for stage in stages for block in stage["blocks"]}
    least = {entry["id"]: entry["reservoir"]["min_storage_hm3"] for entry in documents["hydros"]}
    hydros = {
        "GHIDUH": "generation_mw",
        "QTURUH": "turbined_m3s",
        "QVERTUH": "spillage_m3s",
        "VARMUH": "storage_final_hm3",
    }
    published(case, deck, "USIH", "CONFHD.DAT", documents["hydros"], "hydros", "hydro_id", hydros, hours, least)
    published(
        case,
        deck,
        "USIT",
        "CONFT.DAT",
        documents["thermals"],
        "thermals",
        "thermal_id",
        {"GTERT": "generation_mw"},
        hours,
        {},
    )


def published(case, deck, kind, register, entities, table, key, variables, hours, least):
    codes = codes_in(deck / register)
    parts = sorted((case / "output" / "simulation" / table).glob("*/data.parquet"))
    total, weight = defaultdict(float), defaultdict(float)
    for row in pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).to_pylist():
        share = hours[row["stage_id"], row["block_id"]]
        for variable, column in variables.items():
            useful = least[row[key]] if variable == "VARMUH" else 0.0  # above the minimum, there
            total[row[key], variable, row["stage_id"]] += share * (row[column] - useful)
            weight[row[key], variable, row["stage_id"]] += share
    stages = sorted({stage for _, _, stage in total})
    lines = [",".join([f"{kind}_ext", "VAR", *(str(stage + 1) for stage in stages)])]
    for entity in entities:
        for variable in variables:
            means = [total[entity["id"], variable, stage] / weight[entity["id"], variable, stage] for stage in stages]
            numbers = [f"{mean:14.6f}" for mean in means]
            lines.append(",".join([f"{codes[entity['name']]:6d}", f"{variable:<8}", *numbers]))
    (deck / f"MEDIAS-{kind}.CSV").write_text("\n".join(lines) + "\n")


def codes_in(register):
    lines = register.read_bytes().decode("latin-1").splitlines()
    return {line[6:18].strip(): int(line[:5]) for line in lines if line[:5].strip().isdigit()}
