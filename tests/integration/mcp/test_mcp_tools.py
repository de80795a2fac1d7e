"""Answers of the tools: cases, results, rows, comparisons."""

import json
import shutil

import pytest

pytest.importorskip("mcp.server")

from assistant import CASE, ToolFailedError
from pyarrow import parquet

import cobre

pytestmark = pytest.mark.long


def test_server_lists_its_tools(server):
    tools = {tool.name: tool for tool in server.tools()}

    assert set(tools) == {
        *("list_cases_and_runs", "validate_case", "start_study", "study_status", "study_result"),
        *("query_results", "compare_runs", "stop_study", "start_simulation", "explain_failure"),
        *("read_case_file", "create_case", "change_case", "compute_bound"),
    }
    assert all(tool.description for tool in tools.values())
    assert not tools["start_study"].annotations.read_only_hint
    assert tools["study_status"].annotations.read_only_hint
    assert tools["start_study"].input_schema["required"] == ["case"]


def test_list_tool_finds_cases_and_runs(server, run, studies):
    found = server.list_cases_and_runs()

    assert str(studies / "case") in found["cases"]
    assert str(run) in found["runs"]
    assert found["is_complete"]


def test_validates_a_case(server, studies):
    assert server.validate_case(case="case") == {
        "case": str(studies / "case"),
        "valid": True,
        "errors": [],
        "warnings": [],
    }


def test_errors_of_a_case_are_reported(server, studies):
    broken = studies / "broken"
    shutil.copytree(studies / "case", broken)
    (broken / "stages.json").unlink()

    findings = server.validate_case(case="broken")
    job = server.start_study(case="broken", output="broken-run", iterations=1, workers=1)["job"]
    status = server.finished(job)

    assert not findings["valid"]
    assert "stages.json" in findings["errors"][0]["message"]
    assert findings["errors"][0]["code"] == "missing-file"
    assert status["state"] == "failed"
    assert "stages.json" in status["error"]
    with pytest.raises(ToolFailedError, match=r"no result: it is failed: (?s:.*)stages\.json"):
        server.study_result(job=job)


def test_server_run_has_bits_of_command_line_run(server, run):
    result = server.study_result(job=str(run))
    alone = cobre.train(CASE, iterations=4)

    assert result["digest"] == alone.digest
    assert result["lower_bound"] == alone.lower_bound
    assert len(result["workers"]) == 2
    assert json.loads((run / "summary.json").read_text()).items() <= result.items()
    assert server.study_status(job="run")["last_iteration"]["lower_bound"] == alone.lower_bound


def test_computes_a_bound_of_a_run(server, run):
    found = server.compute_bound(job="run", method="sampled", paths=20)

    assert found["lower_bound"] == pytest.approx(server.study_result(job="run")["lower_bound"])
    assert found["lower_bound"] <= found["upper_bound"] + found["half_width"]
    assert json.loads((run / "bound.json").read_text()) == {name: found[name] for name in found if name != "job"}


def test_error_explains_why_there_is_no_bound(server, studies, run):
    (studies / "empty").mkdir()
    moved = studies / "moved"
    shutil.copytree(run, moved)
    study = json.loads((moved / "study.json").read_text())
    (moved / "study.json").write_text(json.dumps(study | {"case": str(studies.parent / "private")}))

    with pytest.raises(ToolFailedError, match="holds no policy"):
        server.compute_bound(job="empty")
    with pytest.raises(ToolFailedError, match="outside the folders"):
        server.compute_bound(job="moved")
    with pytest.raises(ToolFailedError, match=r"no bound within 0\.01 s"):
        server.compute_bound(job="run", time_limit_s=0.01)


def test_rows_equal_files(server, run):
    table = parquet.read_table(run / "simulation" / "hydros.parquet")
    expected = [
        row
        for row in table.select(["scenario_id", "stage_id", "hydro_id", "storage_final_hm3"]).to_pylist()
        if row["scenario_id"] in (3, 5) and row["stage_id"] == 2 and row["hydro_id"] == 1
    ]

    answer = server.query_results(
        job="run",
        table="hydros",
        columns=["scenario_id", "stage_id", "hydro_id", "storage_final_hm3"],
        scenarios=[3, 5],
        stages=[2],
        entities=["Lower"],
    )

    assert answer["rows"] == expected
    assert answer["total"] == len(expected) > 0
    assert answer["names"] == {"hydro_id": {"1": "Lower"}}


def test_statistics_and_paging(server, run):
    total = parquet.read_table(run / "simulation" / "costs.parquet").num_rows

    page = server.query_results(job="run", table="costs", limit=7, offset=total - 3)
    means = server.query_results(job="run", table="costs", columns=["total_cost"], group_by=["stage_id"])

    assert page["total"] == total
    assert len(page["rows"]) == 3
    assert [row["stage_id"] for row in means["rows"]] == list(range(12))
    assert "hydros" in server.query_results(job="run")["tables"]


def test_compares_runs(server, run, longer, studies):
    shutil.copytree(run, studies / "same")

    assert server.compare_runs(first="run", second="same")["identical"]
    comparison = server.compare_runs(first="run", second=longer)
    assert not comparison["identical"]
    assert comparison["difference"]["part"]


def test_changes_a_case_runs_it_and_compares_in_money(server, run, studies):
    found = server.read_case_file(case="case", file="system/thermals.json")["content"]["thermals"]
    plant = {**found[0], "id": 9, "name": "One more"}
    add = {"file": "system/thermals.json", "op": "add", "path": "/thermals/-", "value": plant}

    assert "system/thermals.json" in server.read_case_file(case="case")["files"]
    assert server.change_case(case="case", output="changed", changes=add)["valid"]  # one change is a list of one
    job = server.start_study(case="changed", output="changed-run", iterations=4, workers=1)["job"]
    assert server.finished(job)["state"] == "finished"
    comparison = server.compare_runs(first="run", second="changed-run", details="stages")

    money = comparison["money"]
    assert money["summary"][0]["difference"] < 0
    assert money["only_in_b"] == [{"kind": "thermals", "id": 9, "name": "One more"}]
    assert "stages" in money
    assert "entities" not in money
    with pytest.raises(ToolFailedError, match="exists and is not empty"):
        server.change_case(case="case", output="changed", changes=[add])
    with pytest.raises(ToolFailedError, match="not an index of a list of 3"):
        server.change_case(case="case", output="other", changes=[{**add, "op": "remove", "path": "/thermals/7"}])
    with pytest.raises(ToolFailedError, match=r"leads out of|outside"):
        server.change_case(case="case", output="other", changes=[{**add, "file": "../case/config.json"}])
    with pytest.raises(ToolFailedError, match="outside"):
        server.change_case(case="case", output="/tmp/elsewhere", changes=[add])
    assert not (studies / "other").exists()


def test_creates_a_case_and_simulates_a_stored_policy(server, run):
    assert "two_reservoirs" in server.create_case(case="new")["templates"]
    assert server.create_case(case="new", template="two_reservoirs")["template"] == "two_reservoirs"
    job = server.start_simulation(case="new", policy="run", output="simulated", scenarios=7, workers=1)["job"]
    assert server.finished(job)["state"] == "finished"
    rows = server.query_results(job=job, table="costs", columns="scenario_id", stages=0)
    assert rows["total"] == 7
    with pytest.raises(ToolFailedError, match="no"):
        server.explain_failure(job=job)
