"""Behaviour of the command line, from a shell."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_runs import EXAMPLES, ONE_PROCESS, QUICK_CASE, cobre
from click.testing import CliRunner

from cobre.cli.error_reporting import ExitCode
from cobre.cli.main import main
from cobre.comm.cores import usable_cores

COMMANDS = sorted(main.commands)


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory):
    """Return the output directory of a small run."""
    output = tmp_path_factory.mktemp("trained") / "out"
    done = cobre("run", QUICK_CASE, "-o", output, "--iterations", 4, *ONE_PROCESS, "--no-report")
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    done = CliRunner().invoke(main, [command, "--help"], prog_name="cobre")
    assert done.exit_code == 0
    usage, _, rest = done.output.partition("\n")
    assert usage.startswith(f"Usage: cobre {command} ")
    assert re.search(rf"^ .*\bcobre {command}\b", rest, re.MULTILINE), "no example"


def _command_names(command, names=()):
    yield names
    for name in getattr(command, "commands", ()):
        yield from _command_names(command.commands[name], (*names, name))


@pytest.mark.parametrize("names", list(_command_names(main)), ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(names):
    done = CliRunner().invoke(main, [*names, "--help"], prog_name="cobre", terminal_width=80)
    assert [line for line in done.output.splitlines() if len(line) > 80] == []


def test_help_lists_all_commands_and_all_exit_codes():
    text = cobre("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", text, re.MULTILINE), command
    for code in ExitCode:
        assert re.search(rf"\b{code.value} ", text), code
    assert "Other commands" not in text


def test_nothing_heavy_is_loaded_for_help():
    program = "import sys; sys.argv = ['cobre', '--help']; from cobre.cli.main import main\ntry: main()\nfinally: "
    program += "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = printed.splitlines()[-1]
    for library in ("numpy", "pyarrow", "highspy", "pydantic", "rich", "textual", "matplotlib"):
        assert f"'{library}'" not in loaded


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_shell_script(shell):
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    script = cobre("completion", shell)
    assert script.returncode == 0
    assert "_COBRE_COMPLETE" in script.stdout


def test_shell_completion_lists_the_commands():
    done = cobre(_COBRE_COMPLETE="bash_complete", COMP_WORDS="cobre va", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,validate"]


def test_version_json():
    versions = json.loads(cobre("version", "--json").stdout)
    assert versions["cobre"] == cobre("--version").stdout.split()[-1]
    assert {"python", "numpy", "highspy"} <= set(versions)


def test_init_creates_valid_case(tmp_path):
    assert cobre("init", tmp_path / "new").returncode == 0
    done = cobre("validate", tmp_path / "new")
    assert done.returncode == 0
    assert "format 0.19 ($schema of config.json): 0 errors" in done.stdout


def test_every_example_is_a_template():
    listed = [line.split()[0] for line in cobre("init", "--list").stdout.splitlines()]
    assert listed == sorted(path.parent.name for path in EXAMPLES.glob("*/config.json"))


def test_init_does_not_overwrite_files(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    done = cobre("init", tmp_path)
    assert done.returncode == ExitCode.OUTPUT
    assert "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_init_rejects_unknown_template(tmp_path):
    done = cobre("init", tmp_path / "new", "--template", "three_gorges")
    assert done.returncode == ExitCode.USAGE
    assert "choose from four_regions, large, two_reservoirs" in done.stderr


def test_validate_json(tmp_path):
    shutil.copytree(QUICK_CASE, tmp_path / "case")
    (tmp_path / "case" / "stages.json").write_text("{")
    done = cobre("validate", tmp_path / "case", "--json")
    assert done.returncode == ExitCode.INVALID_CASE
    report = json.loads(done.stdout)
    assert not report["is_valid"]
    assert report["errors"][0]["file"] == "stages.json"
    assert json.loads(cobre("validate", QUICK_CASE, "--json").stdout)["is_valid"]


def test_run_json_prints_only_json(tmp_path):
    done = cobre("run", QUICK_CASE, "-o", tmp_path / "out", "--iterations", 2, *ONE_PROCESS, "--json", "--quiet")
    summary = json.loads(done.stdout)
    assert summary["iterations"] == 2
    assert done.stderr == ""
    assert summary["report"] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").stat().st_size > 0


def test_piped_run_prints_one_line_per_iteration(tmp_path):
    done = cobre("run", QUICK_CASE, "-o", tmp_path / "out", "--iterations", 3, *ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    numbers = [line.split()[0] for line in done.stdout.splitlines() if re.match(r" +\d+  ", line)]
    assert numbers == ["1", "2", "3"]
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines()[-1] == f"report  {tmp_path / 'out' / 'report.html'}"


def test_workers_are_limited_to_number_of_paths(tmp_path):
    case = tmp_path / "case"
    shutil.copytree(QUICK_CASE, case)
    config = json.loads((case / "config.json").read_text())
    config["training"]["selection"]["forward_passes"] = 1
    (case / "config.json").write_text(json.dumps(config))
    done = cobre("run", case, "-o", tmp_path / "out", "--iterations", 1, "--no-report", "--json", "--quiet")
    assert len(json.loads(done.stdout)["workers"]) == 1
    started = json.loads((tmp_path / "out" / "events.jsonl").read_text().splitlines()[0])
    assert started["threads"] == usable_cores()


def test_simulate_uses_a_stored_policy(trained_run, tmp_path):
    words = ("simulate", QUICK_CASE, "--policy", trained_run, "-o", tmp_path / "out", "--scenarios", 7, *ONE_PROCESS)
    done = cobre(*words, "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulated_scenarios"] == 7
    costs = pq.read_table(tmp_path / "out" / "simulation" / "costs.parquet")
    assert len(set(costs["scenario_id"].to_pylist())) == 7
    assert not (tmp_path / "out" / "training").exists()


def test_simulate_does_not_overwrite_training_results(trained_run):
    before = (trained_run / "summary.json").read_bytes()
    done = cobre("simulate", QUICK_CASE, "--policy", trained_run, "-o", trained_run, *ONE_PROCESS)
    assert done.returncode == ExitCode.OUTPUT
    assert "choose another --output" in done.stderr
    assert (trained_run / "summary.json").read_bytes() == before


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_empty_path_is_refused(command, tmp_path):
    done = cobre(command, QUICK_CASE, "-o", "", *(() if command == "run" else ("-p", tmp_path)))
    assert done.returncode == ExitCode.USAGE
    assert "the name is empty" in done.stderr


def test_simulate_refuses_the_policy_of_another_study(trained_run, tmp_path):
    done = cobre("simulate", EXAMPLES / "four_regions", "-p", trained_run, "-o", tmp_path / "out", *ONE_PROCESS)
    assert done.returncode == ExitCode.POLICY
    assert "Traceback" not in done.stderr


def test_simulate_reports_missing_policy_file(tmp_path):
    done = cobre("simulate", QUICK_CASE, "-p", tmp_path / "none", "-o", tmp_path / "out", *ONE_PROCESS)
    assert done.returncode == ExitCode.POLICY
    assert str(tmp_path / "none") in done.stderr


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory):
    """Run a case whose upper reservoir loses more water than it has; return the output directory and the process."""
    folder = tmp_path_factory.mktemp("failed")
    case = folder / "case"
    shutil.copytree(QUICK_CASE, case)
    path = case / "scenarios" / "inflow_seasonal_stats.parquet"
    table = pq.read_table(path)
    rows = [row | ({"mean_m3s": -600.0} if row["hydro_id"] == 0 else {}) for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    config = json.loads((case / "config.json").read_text())
    config["modeling"]["inflow_non_negativity"]["method"] = "none"
    (case / "config.json").write_text(json.dumps(config))
    done = cobre("run", case, "-o", folder / "out", *ONE_PROCESS, "--no-report")
    return folder / "out", done


def test_error_for_an_unsolvable_stage_points_to_the_explanation(failed_run):
    output, done = failed_run
    assert done.returncode == ExitCode.UNSOLVABLE
    command = re.search(r"`(cobre explain .*?)`", done.stderr)[1]
    assert Path(shlex.split(command)[-1]).parent == output / "failures"


def test_explain_names_constraints_of_the_hydro_system(failed_run):
    text = cobre("explain", failed_run[0]).stdout
    assert "the LP is infeasible" in text
    assert "water balance of Upper (hydro 0)" in text
    assert "volume at the end of Upper (hydro 0): at least 150 hm3" in text
    assert "not below zero at Upper (hydro 0): turbined flow, spilled flow" in text
    assert "Lower" not in text
    assert "set `modeling.inflow_non_negativity.method` to `penalty`" in text


def test_explain_gives_the_missing_amount(failed_run):
    explained = json.loads(cobre("explain", failed_run[0], "--json").stdout)
    facts = json.loads(next((failed_run[0] / "failures").glob("*.json")).read_text())
    hours = 744.0
    lacking = 150.0 - facts["state"][0] - 0.0036 * hours * facts["inflow_m3s"][0]
    assert float(explained["missing"][0].split()[0]) == pytest.approx(lacking, rel=1e-4)


def test_explain_works_from_lp_file_alone(failed_run, tmp_path):
    lp = next((failed_run[0] / "failures").glob("*.mps"))
    shutil.copy(lp, tmp_path / "alone.mps")
    assert "water balance of hydro number 0" in cobre("explain", tmp_path / "alone.mps").stdout


@pytest.mark.parametrize("command", ["explain", "top", "report"])
@pytest.mark.parametrize("kind", ["missing", "empty", "file"])
def test_paths_without_run_are_errors(command, kind, tmp_path):
    folder = tmp_path / "out"
    if kind == "empty":
        folder.mkdir()
    if kind == "file":
        folder.write_text("nothing")
    done = cobre(command, folder)
    assert done.returncode == ExitCode.RESULTS
    assert str(folder) in done.stderr
    assert "Traceback" not in done.stderr


def test_piped_top_prints_state_once(trained_run):
    done = cobre("top", trained_run)
    assert done.returncode == 0
    assert done.stdout.startswith("finished")
    assert "iteration   4 of 4" in done.stdout


def test_doctor_json():
    diagnosis = json.loads(cobre("doctor", "--json").stdout)
    assert {"healthy", "backends"} <= set(diagnosis)
    assert "a case with a scenario tree gets a worker for each core" in json.dumps(diagnosis)


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("run", "nowhere"), 2, "'nowhere' does not exist"),
        (("run", QUICK_CASE, "--output", __file__), 2, "is a file; give a directory"),
        (("run", QUICK_CASE, "--iterations", "none"), 2, "is not a valid integer"),
        (("compare", "nowhere", "elsewhere"), 8, "nowhere"),
        (("bound", "nowhere"), 8, "nowhere does not exist: give"),
        (("explain", "nowhere"), 8, "nowhere"),
    ],
)
def test_errors_before_run_are_json_with_json_option(words, code, part):
    done = cobre(*words, "--json")
    assert done.returncode == code
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["exit_code"] == code
    assert part in last["error"]
    assert part in done.stderr
