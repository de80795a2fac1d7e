"""Two output directories: identical, or the first place where they differ, in words and in bits."""

import hashlib
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from cobre.cli.main import main
from cobre.io.output import read_manifest, read_results, write_results
from cobre.io.policies.policy_file import read_policy, write_policy
from cobre.runs.bit_comparison import Difference, compare_runs
from cobre.runs.content import IncompleteRunError, read_run_content
from cobre.study.output.output_lock import output_lock

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"


def run(output, *flags):
    arguments = ["run", str(EXAMPLE), "--output", str(output), "--backend", "local", "--quiet", "--no-report", *flags]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return output


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return run(tmp_path_factory.mktemp("run") / "output", "--iterations", "3")


@pytest.fixture
def other(original, tmp_path):
    """Return a copy that a test may change."""
    return shutil.copytree(original, tmp_path / "other")


def next_float(value):
    """Return the next larger float."""
    return math.nextafter(value, math.inf)


def change_policy(output, change):
    path = output / "policy" / "policy.bin"
    write_policy(path, change(read_policy(path)))


def change_cut(output, stage, cut, component, change=next_float):
    """Change a number of a cut. component: None is the intercept."""

    def changed(policy):
        cuts = policy.stages[stage]
        intercepts, coefficients = cuts.intercepts.copy(), cuts.coefficients.copy()
        target = (intercepts, cut) if component is None else (coefficients, (cut, component))
        target[0][target[1]] = change(target[0][target[1]])
        stages = list(policy.stages)
        stages[stage] = replace(cuts, intercepts=intercepts, coefficients=coefficients)
        return replace(policy, stages=tuple(stages))

    change_policy(output, changed)


def change_table(output, part, name, change):
    """Rewrite a part of the results with another table."""
    folder = output / part
    tables = read_results(folder)
    tables[name] = change(tables[name])
    write_results(folder, tables, read_manifest(folder)["run"])


def change_value(output, part, name, row, column, change=next_float):
    def changed(table):
        values = table.column(column).to_pylist()
        values[row] = change(values[row])
        at = table.column_names.index(column)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))

    change_table(output, part, name, changed)


def test_copies_are_identical(original, other):
    comparison = compare_runs(original, other)
    assert comparison.is_identical and comparison.difference is None
    assert comparison.digests[0] == comparison.digests[1]


def test_time_and_compression_are_ignored(original, other):
    """Only results count: when and by whom they were made, and how they are stored, does not."""
    path = other / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"training_seconds": 1e9, "workers": []}))
    (other / "events.jsonl").unlink()
    assert compare_runs(original, other).is_identical


def test_last_bit_of_cut_is_detected(original, other):
    change_cut(other, stage=4, cut=6, component=1)
    found = compare_runs(original, other).difference
    assert found.part == "cuts"
    assert found.location == {"iteration": 2, "stage": 4, "cut": 6, "forward pass": 2, "component": "storage:1"}
    assert found.second == next_float(found.first)
    assert found.first.hex() in str(found) and found.second.hex() in str(found)
    assert repr(found.first) in str(found)


def test_intercept_difference_is_reported(original, other):
    change_cut(other, stage=0, cut=0, component=None)
    location = compare_runs(original, other).difference.location
    assert (location["iteration"], location["component"]) == (1, "intercept")


def test_first_difference_in_time_is_reported(original, other):
    """Cuts are made from the last stage to the first, iteration after iteration, before the lower bound."""
    change_cut(other, stage=2, cut=9, component=0)  # iteration 3
    change_cut(other, stage=3, cut=5, component=0)  # iteration 2
    change_cut(other, stage=7, cut=7, component=0)  # iteration 2, made before
    change_value(other, "training", "convergence", 1, "lower_bound")
    location = compare_runs(original, other).difference.location
    assert (location["iteration"], location["stage"], location["cut"]) == (2, 7, 7)


@pytest.mark.parametrize("column", ["upper_bound", "lower_bound"])
def test_bound_difference_is_reported(original, other, column):
    change_value(other, "training", "convergence", 1, column)
    found = compare_runs(original, other).difference
    assert (found.part, found.location) == ("bounds", {"iteration": 2, "column": column})
    assert found.second == next_float(found.first)


def test_times_are_ignored(original, other):
    change_value(other, "training", "convergence", 1, "backward_us_per_pivot")
    assert compare_runs(original, other).is_identical


def test_work_of_the_solver_is_compared(original, other):
    change_value(other, "training", "convergence", 1, "backward_pivots", lambda pivots: pivots + 1)
    found = compare_runs(original, other).difference
    assert found.location == {"iteration": 2, "column": "backward_pivots"}


def test_paths_of_an_iteration_come_before_its_cuts(original, other):
    change_cut(other, stage=3, cut=5, component=0)
    change_value(other, "training", "convergence", 1, "upper_bound")
    assert compare_runs(original, other).difference.location == {"iteration": 2, "column": "upper_bound"}


def test_active_flag_difference_is_reported(original, other):
    def changed(policy):
        flags = policy.stages[1].is_active.copy()
        flags[3] ^= 1
        stages = list(policy.stages)
        stages[1] = replace(stages[1], is_active=flags)
        return replace(policy, stages=tuple(stages))

    change_policy(other, changed)
    found = compare_runs(original, other).difference
    assert found.location == {"iteration": 1, "stage": 1, "cut": 3, "entry": "is_active"}
    assert (found.first, found.second) == (1, 0)


def test_simulated_difference_is_reported(original, other):
    table = read_results(original / "simulation")["hydros"]
    change_value(other, "simulation", "hydros", 5, "storage_final_hm3")
    found = compare_runs(original, other).difference
    assert found.part == "simulation"
    expected = {"table": "hydros", "row": 5, "column": "storage_final_hm3"}
    assert {key: found.location[key] for key in expected} == expected
    assert found.location["scenario_id"] == table.column("scenario_id")[5].as_py()
    assert found.location["hydro_id"] == table.column("hydro_id")[5].as_py()


def test_zero_differs_from_minus_zero(original, other):
    table = read_results(original / "simulation")["hydros"]
    values = table.column("spillage_m3s").to_numpy()
    row = int(np.nonzero(values == 0.0)[0][0])
    change_value(other, "simulation", "hydros", row, "spillage_m3s", lambda value: -value)
    found = compare_runs(original, other).difference
    assert found.location["row"] == row
    assert {found.first.hex(), found.second.hex()} == {"0x0.0p+0", "-0x0.0p+0"}


def test_not_a_number_equals_itself(original, other, tmp_path):
    third = shutil.copytree(original, tmp_path / "third")
    for output in (other, third):
        change_value(output, "simulation", "hydros", 0, "spillage_m3s", lambda _: math.nan)
    assert compare_runs(other, third).is_identical
    found = compare_runs(original, third).difference
    assert "nan:7ff8000000000000" in str(found)
    assert found.as_dict()["second"] == {"value": None, "hex": "nan:7ff8000000000000"}


def test_missing_table_is_reported(original, other):
    tables = read_results(other / "simulation")
    del tables["buses"]
    write_results(other / "simulation", tables, read_manifest(other / "simulation")["run"])
    found = compare_runs(original, other).difference
    assert (found.location, found.first, found.second) == ({"table": "buses"}, "there", None)
    assert "there and nothing" in str(found)


def test_missing_rows_are_reported(original, other):
    change_table(other, "simulation", "costs", lambda table: table[:-2])
    found = compare_runs(original, other).difference
    assert found.location == {"table": "costs", "entry": "number of rows"}
    assert found.first == found.second + 2


def test_fewer_iterations_are_the_difference_when_all_others_agree(original, tmp_path):
    shorter = run(tmp_path / "shorter", "--iterations", "2")
    comparison = compare_runs(original, shorter)
    assert comparison.difference == Difference("bounds", {"entry": "number of iterations"}, 3, 2)
    assert any("stopping_rules" in note for note in comparison.notes)


def test_metadata_difference_is_reported(original, other):
    change_policy(other, lambda policy: replace(policy, metadata=replace(policy.metadata, seeds={"tree_seed": 7})))
    found = compare_runs(original, other).difference
    assert (found.part, found.location, found.first, found.second) == ("policy", {"metadata": "seeds.tree_seed"}, 42, 7)


def test_different_states_are_reported_first(original, other):
    change_cut(other, stage=4, cut=6, component=1)
    renamed = ("storage:0", "storage:9")
    change_policy(other, lambda policy: replace(policy, metadata=replace(policy.metadata, state_names=renamed)))
    assert compare_runs(original, other).difference.location == {"metadata": "state_names"}


def test_directory_without_run_raises(original, tmp_path):
    with pytest.raises(IncompleteRunError, match="is not a directory"):
        compare_runs(original, tmp_path / "missing")
    with pytest.raises(IncompleteRunError, match=r"summary\.json is missing"):
        compare_runs(tmp_path, original)


def test_unfinished_run_raises(original, other):
    (other / "summary.json").unlink()
    with pytest.raises(IncompleteRunError, match="the run did not finish"):
        compare_runs(original, other)


def test_running_study_raises(original, other):
    with output_lock(other), pytest.raises(IncompleteRunError, match="still in progress"):
        compare_runs(original, other)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("summary.json", "cannot be read"),
        ("study.json", "cannot be read"),
        ("training/manifest.json", "cannot be read"),
        ("simulation/hydros.parquet", "checksum differs"),
        ("policy/policy.bin", "is not a policy file"),
    ],
)
def test_damaged_file_raises(original, other, file, words):
    (other / file).write_bytes(b"damaged")
    with pytest.raises(IncompleteRunError, match=words):
        compare_runs(original, other)


@pytest.mark.parametrize("file", ["training/manifest.json", "simulation/hydros.parquet", "policy/policy.bin"])
def test_missing_file(original, other, file):
    (other / file).unlink()
    with pytest.raises(IncompleteRunError, match=r"missing|no such file"):
        compare_runs(original, other)


def test_replaced_tables_are_detected(original, other):
    facts = read_manifest(other / "simulation")["run"] | {"digest": "of an earlier run"}
    write_results(other / "simulation", read_results(other / "simulation"), facts)
    with pytest.raises(IncompleteRunError, match=r"belongs to another run than summary\.json"):
        read_run_content(other)


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_command_reports_identical_runs(original, other):
    done = compare(original, other)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "identical",
        f"digest {compare_runs(original, other).digests[0]} of bounds, cuts, policy file and simulation",
    ]


def test_command_prints_first_difference(original, other):
    change_cut(other, stage=4, cut=6, component=1)
    done = compare(original, other)
    assert done.exit_code == 1
    assert "first difference in cuts: iteration 2, stage 4, cut 6" in done.stdout
    assert "component storage:1: " in done.stdout and "0x" in done.stdout


def test_command_prints_json(original, other):
    assert json.loads(compare(original, other, "--json").stdout)["identical"] is True
    change_cut(other, stage=4, cut=6, component=1)
    done = compare("--json", original, other)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["identical"]) == (1, False)
    assert found["difference"]["place"]["iteration"] == 2
    assert float.fromhex(found["difference"]["first"]["hex"]) == found["difference"]["first"]["value"]


def test_command_rejects_directory_without_run(original, tmp_path):
    done = compare(original, tmp_path)
    assert (done.exit_code, done.stdout) == (8, "")
    assert "has no complete results" in done.stderr


@pytest.mark.parametrize("file", ["simulation/hydros.parquet", "training/convergence.parquet", "policy/policy.bin"])
def test_directory_instead_of_result_file_raises(original, other, file):
    (other / file).unlink()
    (other / file).mkdir()
    done = compare(original, other)
    assert done.exit_code == 8
    assert f"{file}" in done.stderr and "Is a directory" in done.stderr


@pytest.mark.parametrize("file", ["study.json", "summary.json", "simulation/manifest.json"])
def test_endlessly_nested_json_raises(original, other, file):
    (other / file).write_text('{"a":' * 5000 + "1" + "}" * 5000)
    done = compare(original, other)
    assert done.exit_code == 8
    assert f"{file} cannot be read: it is nested too deeply" in done.stderr


def test_row_groups_are_no_difference_and_hide_none(original, other):
    """Tables are read a row group at a time; Row groups are ignored: they do not change results.."""
    folder = other / "simulation"
    path, manifest = folder / "hydros.parquet", folder / "manifest.json"
    table = read_results(folder)["hydros"]

    def store(changed):
        parquet.write_table(changed, path, row_group_size=7)
        content = json.loads(manifest.read_text())
        content["tables"]["hydros"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(content))

    store(table)
    assert compare_runs(original, other).is_identical
    at = table.column_names.index("storage_final_hm3")
    values = table.column(at).to_numpy().copy()
    values[17] = np.nextafter(values[17], np.inf)
    store(table.set_column(at, "storage_final_hm3", pa.array(values)))
    found = compare_runs(original, other).difference
    assert (found.location["row"], found.location["column"]) == (17, "storage_final_hm3")
    assert found.location["scenario_id"] == table.column("scenario_id")[17].as_py()
