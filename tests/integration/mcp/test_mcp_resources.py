"""Results as resources."""

import json
import shutil

import pytest

pytest.importorskip("mcp.server")

from mcp import MCPError
from pyarrow import parquet

pytestmark = pytest.mark.long


class TestResources:
    def test_resources_are_listed_for_each_run(self, server, run):
        files = {uri.rsplit("/", 1)[1] for uri in server.resources() if uri.startswith("cobre://runs/studies/run/")}

        assert files == {"summary.json", "study.json", "convergence.json", "events.jsonl", "report.html"}
        assert len(server.templates()) == 5

    def test_resources_equal_the_files_of_the_run(self, server, run):
        base = "cobre://runs/studies/run"

        assert json.loads(server.read(f"{base}/summary.json")) == json.loads((run / "summary.json").read_text())
        assert json.loads(server.read(f"{base}/study.json"))["name"] == "case"
        bounds = parquet.read_table(run / "training" / "convergence.parquet").to_pylist()
        assert json.loads(server.read(f"{base}/convergence.json")) == bounds
        assert server.read(f"{base}/events.jsonl") == (run / "events.jsonl").read_text()
        assert server.read(f"{base}/report.html").startswith("<!DOCTYPE html>")

    def test_missing_report_is_rendered_without_writing_it(self, server, run, studies):
        copy = studies / "without report"
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("report.html"))

        uri = next(uri for uri in server.resources() if "without%20report" in uri and uri.endswith("report.html"))

        assert server.read(uri).startswith("<!DOCTYPE html>")
        assert not (copy / "report.html").exists()

    def test_missing_resources_are_reported(self, server, studies):
        (studies / "empty").mkdir()

        with pytest.raises(MCPError, match=r"has no summary\.json"):
            server.read("cobre://runs/studies/empty/summary.json")
        with pytest.raises(MCPError, match="does not exist"):
            server.read("cobre://runs/studies/nothing/summary.json")
