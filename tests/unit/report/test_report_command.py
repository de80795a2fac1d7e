"""The command `cobre report`."""

import subprocess
import sys

import pytest
from report_page import data_of


def report(*arguments):
    command = [sys.executable, "-m", "cobre.cli", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_command_prints_path_of_report(run_copy):
    (run_copy / "report.html").unlink(missing_ok=True)
    done = report(run_copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(run_copy / "report.html")
    assert (run_copy / "report.html").exists()


@pytest.mark.parametrize(
    "name", ["simulation/hydros.parquet", "training/convergence.parquet", "simulation/entity_stages.parquet"]
)
def test_damaged_table_is_an_error_naming_it(run_copy, name):
    """One bit of a table that the report shows, or of one that it does not show."""
    (run_copy / "report.html").unlink(missing_ok=True)
    content = bytearray((run_copy / name).read_bytes())
    content[len(content) // 3] ^= 0x40
    (run_copy / name).write_bytes(content)
    done = report(run_copy)
    assert done.returncode == 8
    assert name in done.stderr
    assert "checksum differs" in done.stderr
    assert "run the study again" in done.stderr
    assert any(name in warning for warning in data_of((run_copy / "report.html").read_text())["warnings"])


@pytest.mark.parametrize("name", ["study.json", "summary.json", "training/manifest.json", "simulation/manifest.json"])
def test_missing_file_of_finished_run_is_an_error_naming_it(run_copy, name):
    (run_copy / name).unlink()
    done = report(run_copy)
    assert done.returncode == 8
    assert f"{name} is missing" in done.stderr
    assert any(
        f"{name} is missing" in warning for warning in data_of((run_copy / "report.html").read_text())["warnings"]
    )


def test_partial_event_line_is_ignored(run_copy):
    with (run_copy / "events.jsonl").open("a") as events:
        events.write('{"type": "iter')
    assert report(run_copy).returncode == 0


def test_report_does_not_import_pandas(run_copy):
    """pandas takes half a second to load if it is installed, and a report does not need it."""
    imports = "import sys; from pathlib import Path; from cobre.report.document import write_report"
    command = [
        sys.executable,
        "-c",
        f"{imports}; write_report(Path(sys.argv[1])); print('pandas' in sys.modules)",
        run_copy,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_report_needs_no_library_of_figures(run_copy):
    """Matplotlib is for notebooks, and not everyone has it."""
    program = "import sys; sys.modules['matplotlib'] = None; from cobre.cli.main import main; main()"
    command = [sys.executable, "-c", program, "report", run_copy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_option_full_includes_all_scenarios(run_copy, tmp_path):
    assert report(run_copy, "--full", "--output", tmp_path / "full.html").returncode == 0
    explorer = data_of((tmp_path / "full.html").read_text())["explorer"]
    assert [name for name in explorer["scenarios"] if name.startswith("scenario ")] == [
        f"scenario {number}" for number in range(200)
    ]
    hydros = explorer["kinds"][0]
    turbined = next(quantity for quantity in hydros["quantities"] if quantity["key"] == "turbined")
    assert turbined["block_statistics"] == ["mean", "5 %", "95 %"]


def test_option_output_sets_the_path_of_the_report(run_copy, tmp_path):
    (run_copy / "report.html").unlink(missing_ok=True)
    assert report(run_copy, "--output", tmp_path / "there.html").returncode == 0
    assert (tmp_path / "there.html").exists()
    assert not (run_copy / "report.html").exists()


def test_missing_output_directory_is_one_line_error(tmp_path):
    done = report(tmp_path / "nothing")
    assert done.returncode == 8
    assert done.stderr == f"cobre: {tmp_path / 'nothing'} does not exist; give the output directory of a run\n"


def test_unwritable_report_has_exit_code_of_outputs(run_copy):
    done = report(run_copy, "--output", run_copy / "summary.json" / "report.html")
    assert done.returncode == 5
    assert done.stderr.startswith("cobre: cannot write")
    assert "Traceback" not in done.stderr
