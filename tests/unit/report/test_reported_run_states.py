"""Reports of running, failed, interrupted and damaged runs, and of directories without a run."""

import fcntl
import json
import shutil

import pytest
from report_page import Page, data_of, series

from cobre.io.output import ResultsError
from cobre.report.document import write_report
from cobre.report.run_folder import ReportError
from cobre.runs.table_query import TableQuery, query_table


def top_of(text):
    return Page(text[text.index("<body") : text.index("<header")] + "</body>").text


def test_killed_run_is_reported_as_interrupted(only_events):
    text = write_report(only_events).read_text()
    assert "Interrupted. This run ended before it was finished" in top_of(text)
    assert "5 iterations" in top_of(text)
    data = data_of(text)
    assert data["state"] == "interrupted"
    assert data["warnings"] == []  # a partial last line is not reported as damage
    assert len(series(data, "bounds", "lower bound")) == 5
    assert "cost-histogram" not in data["charts"]


def test_running_study_is_reported_as_running(only_events):
    with (only_events / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = write_report(only_events).read_text()
    assert "Still running" in top_of(text)
    assert data_of(text)["state"] == "running"


def test_stale_lock_file_is_reported_as_interrupted(only_events):
    (only_events / "run.lock").write_text("pid 1 on elsewhere")
    assert data_of(write_report(only_events).read_text())["state"] == "interrupted"


def test_run_without_iterations_has_a_report(only_events):
    first = (only_events / "events.jsonl").read_text().splitlines()[0]
    (only_events / "events.jsonl").write_text(first + "\n")
    page = Page(write_report(only_events).read_text())
    assert "no iteration yet" in page.text


def test_log_without_complete_line_has_a_report(tmp_path):
    (tmp_path / "events.jsonl").write_text('{"event": "run_sta')
    assert "0 iterations" in top_of(write_report(tmp_path).read_text())


def test_failed_run_shows_its_error(only_events):
    log = only_events / "events.jsonl"
    whole = log.read_text().rpartition("\n")[0]
    failed = {"event": "run_failed", "time": 1.8e9, "error": "stage 3 has <no> solution", "kind": "StageFailedError"}
    log.write_text(f"{whole}\n{json.dumps(failed)}\n")
    assert "Failed. This run ended with an error: stage 3 has <no> solution." in top_of(
        write_report(only_events).read_text()
    )


def test_stopped_run_has_no_simulation(run_copy):
    summary = json.loads((run_copy / "summary.json").read_text())
    (run_copy / "summary.json").write_text(json.dumps(summary | {"is_interrupted": True}))
    shutil.rmtree(run_copy / "simulation")
    text = write_report(run_copy).read_text()
    assert "Stopped early" in top_of(text)
    assert "cost-histogram" not in data_of(text)["charts"]


def test_simulation_of_stored_policy_is_reported(run_copy):
    summary = json.loads((run_copy / "summary.json").read_text())
    changed = {"stop_kind": None, "stop_reason": "a stored policy was used", "training_seconds": 0.0, "digest": ""}
    (run_copy / "summary.json").write_text(json.dumps(summary | changed))
    lines = (run_copy / "events.jsonl").read_text().splitlines()
    kept = [line for line in lines if not any(word in line for word in ('"iteration"', '"training', '"checkpoint"'))]
    (run_copy / "events.jsonl").write_text("\n".join(kept) + "\n")
    shutil.rmtree(run_copy / "training")
    text = write_report(run_copy).read_text()
    page = Page(text)
    assert "of the stored policy, 12 iterations" in page.text
    assert "· a stored policy was used" in page.text
    assert "no iteration yet" not in page.text
    assert "<dt>Training</dt>" not in text
    assert "cost-histogram" in data_of(text)["charts"]


def test_damaged_files_are_listed_and_rest_is_shown(run_copy):
    (run_copy / "study.json").write_text('{"name": ')
    (run_copy / "simulation" / "hydros.parquet").write_bytes(b"PAR1 no more")
    lines = (run_copy / "events.jsonl").read_text().splitlines()
    lines[2] = "{"
    (run_copy / "events.jsonl").write_text("\n".join(lines) + "\n")
    data = data_of(write_report(run_copy).read_text())
    assert [warning.split(" ")[0] for warning in data["warnings"]] == [
        "events.jsonl:",
        "study.json",
        "simulation/hydros.parquet",
    ]
    assert "line 3" in data["warnings"][0]
    assert "storage" not in data["charts"]
    assert {"bounds", "cost-histogram", "thermal-generation"} <= set(data["charts"])
    assert data["charts"]["thermal-generation"]["labels"][0] == "stage 0"


def test_table_that_is_missing(run_copy):
    (run_copy / "simulation" / "costs.parquet").unlink()
    text = write_report(run_copy).read_text()
    assert any("costs.parquet is missing" in warning for warning in data_of(text)["warnings"])


def test_every_reader_detects_one_flipped_bit(run_copy):
    """Parquet has no checksum of its own: a changed exponent is a number like any other."""
    damaged = [path for part in ("training", "simulation") for path in sorted((run_copy / part).glob("*.parquet"))]
    assert len(damaged) > 5
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0x40
        path.write_bytes(content)
        with pytest.raises(ResultsError, match=rf"{path.name} is not the file .* checksum differs"):
            query_table(run_copy, TableQuery(path.stem))
    data = data_of(write_report(run_copy).read_text())
    named = [path.name for path in damaged if any(path.name in warning for warning in data["warnings"])]
    assert {"convergence.parquet", "costs.parquet", "hydros.parquet", "buses.parquet", "thermals.parquet"} <= set(named)
    assert "storage" not in data["charts"]
    assert len(series(data, "bounds", "lower bound")) == 12  # of the events


def test_damaged_manifest(run_copy):
    (run_copy / "training" / "manifest.json").write_text("[]")
    data = data_of(write_report(run_copy).read_text())
    assert any("manifest.json cannot be read: it is not a JSON object" in warning for warning in data["warnings"])
    assert len(series(data, "bounds", "lower bound")) == 12  # of the events


def test_paths_that_are_no_output_directory_are_refused(tmp_path, finished_run):
    with pytest.raises(ReportError, match="missing does not exist; give the output directory of a run"):
        write_report(tmp_path / "missing")
    with pytest.raises(ReportError, match=r"is not the output directory of a run: it has none of events\.jsonl"):
        write_report(tmp_path)
    with pytest.raises(ReportError, match="is a file"):
        write_report(finished_run / "summary.json")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ReportError, match="it looks like a case: `cobre run"):
        write_report(tmp_path)


def test_place_that_cannot_be_written(finished_run):
    with pytest.raises(ReportError, match=r"cannot write .*report\.html"):
        write_report(finished_run, finished_run / "summary.json" / "report.html")
