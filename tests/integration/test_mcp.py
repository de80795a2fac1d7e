"""The server as an assistant's program uses it: a process of its own, spoken to by the protocol's own client."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from anyio.from_thread import start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import is_alive, wait_until, wait_until_gone
from pyarrow import parquet

import cobre
from cobre.study.output_lock import is_in_use

pytestmark = pytest.mark.long

CASE = Path(__file__).parents[2] / "examples" / "two_reservoirs"
ENDLESS = 100_000
IMPORTS = str(Path(cobre.__file__).parent.parent)


class ToolFailedError(Exception):
    """What the tool said."""


class Assistant:
    """Calls tools and reads resources; blocks until the answer is there."""

    def __init__(self, portal, client):
        self._portal = portal
        self._client = client

    def __getattr__(self, tool):
        return lambda **arguments: self.call(tool, arguments)

    def call(self, tool, arguments):
        answer = self._portal.call(self._client.call_tool, tool, arguments)
        text = answer.content[0].text
        if answer.is_error:
            raise ToolFailedError(text)
        assert json.loads(text) == answer.structured_content
        return answer.structured_content

    def tools(self):
        return self._portal.call(self._client.list_tools).tools

    def resources(self):
        return {resource.uri: resource for resource in self._portal.call(self._client.list_resources).resources}

    def templates(self):
        return self._portal.call(self._client.list_resource_templates).resource_templates

    def read(self, uri):
        return self._portal.call(self._client.read_resource, uri).contents[0].text

    def start(self, output, **options):
        """Start a study that writes no report: most tests do not look at it."""
        return self.start_study(case="case", output=output, **{"report": False, "workers": 1, **options})

    def finished(self, job):
        return wait_until(lambda: self._ended(job), f"{job} has ended")

    def _ended(self, job):
        status = self.study_status(job=str(job), wait_s=30)
        return status if status["state"] not in ("starting", "running") else None

    def iterating(self, job):
        """Wait until the study has finished an iteration."""
        wait_until(lambda: self.study_status(job=str(job)).get("last_iteration"), "an iteration is over")


@contextmanager
def assistant(*roots, options=()):
    arguments = ["-m", "cobre.cli", "mcp", *options]
    for root in roots:
        arguments += ["--root", str(root)]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, (IMPORTS, os.environ.get("PYTHONPATH"))))}
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(stdio_client(server))) as client:
        yield Assistant(portal, client)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder for the server, and beside it one that is none of its business."""
    place = tmp_path_factory.mktemp("mcp")
    shutil.copytree(CASE, place / "studies" / "case", ignore=shutil.ignore_patterns("output"))
    (place / "private").mkdir()
    (place / "private" / "summary.json").write_text('{"secret": 1}')
    return place


@pytest.fixture(scope="module")
def studies(place):
    return place / "studies"


@pytest.fixture(scope="module")
def server(studies):
    with assistant(studies) as server:
        yield server


@pytest.fixture(scope="module")
def run(server, studies):
    """A run by two workers."""
    job = server.start_study(case="case", output="run", iterations=4, workers=2)["job"]
    assert server.finished(job)["state"] == "finished"
    return studies / "run"


@pytest.fixture(scope="module")
def longer(server, studies):
    """A run by one process, with one more iteration."""
    started = server.start("longer", iterations=5)
    assert started["state"] == "starting"
    assert started["job"] == str(studies / "longer")
    assert server.finished("longer")["state"] == "finished"
    assert not (studies / "longer" / "report.html").exists()
    return started["job"]


def test_says_what_it_can_do(server):
    tools = {tool.name: tool for tool in server.tools()}

    assert set(tools) == {
        *("list_cases_and_runs", "validate_case", "start_study", "study_status", "study_result"),
        *("query_results", "compare_runs", "stop_study"),
    }
    assert all(tool.description for tool in tools.values())
    assert not tools["start_study"].annotations.read_only_hint
    assert tools["study_status"].annotations.read_only_hint
    assert tools["start_study"].input_schema["required"] == ["case"]


def test_finds_cases_and_runs(server, run, studies):
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


def test_says_what_is_wrong_with_a_case(server, studies):
    broken = studies / "broken"
    shutil.copytree(studies / "case", broken)
    (broken / "stages.json").unlink()

    findings = server.validate_case(case="broken")
    job = server.start_study(case="broken", output="broken-run", iterations=1, workers=1)["job"]
    status = server.finished(job)

    assert not findings["valid"]
    assert "stages.json" in findings["errors"][0]["message"]
    assert status["state"] == "failed"
    assert "stages.json" in status["error"]
    with pytest.raises(ToolFailedError, match=r"no result, it is failed: (?s:.*)stages\.json"):
        server.study_result(job=job)


def test_a_run_has_the_bits_of_any_other(server, run):
    result = server.study_result(job=str(run))
    alone = cobre.train(CASE, iterations=4)

    assert result["digest"] == alone.digest
    assert result["lower_bound"] == alone.lower_bound
    assert len(result["workers"]) == 2
    assert json.loads((run / "summary.json").read_text()).items() <= result.items()
    assert server.study_status(job="run")["last_iteration"]["lower_bound"] == alone.lower_bound


def test_rows_are_those_of_the_files(server, run):
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


def test_statistics_and_pages(server, run):
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


def test_stops_a_study_and_resumes_it(server, studies):
    job = server.start("stopped", iterations=ENDLESS, workers=2)["job"]
    server.iterating(job)
    with pytest.raises(ToolFailedError, match="no result, it is running"):
        server.study_result(job=job)
    with pytest.raises(ToolFailedError, match="is running in"):
        server.start_study(case="case", output="stopped", overwrite=True)

    server.stop_study(job=job)
    status = server.finished(job)
    done = server.study_result(job=job)["iterations"]
    server.start("stopped", iterations=done + 2, resume=True)

    assert status["state"] == "stopped"
    assert server.finished(job)["state"] == "finished"
    resumed = server.study_result(job=job)
    assert resumed["iterations"] == done + 2
    assert resumed["digest"] == cobre.train(CASE, iterations=done + 2).digest
    with pytest.raises(ToolFailedError, match="no study is running"):
        server.stop_study(job=job)


def test_stops_a_study_at_once(server, studies):
    started = server.start("at-once", iterations=ENDLESS, workers=2)
    server.iterating("at-once")

    server.stop_study(job="at-once", at_once=True)

    assert server.finished("at-once")["state"] in ("failed", "killed", "stopped")
    wait_until_gone([started["pid"]])


def test_a_killed_study_is_told_from_a_finished_one(server):
    started = server.start("killed", iterations=ENDLESS)
    server.iterating("killed")

    os.kill(started["pid"], signal.SIGKILL)

    status = server.finished("killed")
    assert status["state"] == "killed"
    assert status["last_iteration"]["iteration"] >= 1


def test_a_study_outlives_the_server_and_another_server_stops_it(studies):
    with assistant(studies, options=("--max-studies", "1")) as first:
        job = first.start("outlives", iterations=ENDLESS, workers=2)
        with pytest.raises(ToolFailedError, match="1 studies are running already"):
            first.start("one-too-many")
        first.iterating("outlives")

    assert is_alive(job["pid"])
    with assistant(studies) as second:
        second.stop_study(job="outlives")
        assert second.finished("outlives")["state"] == "stopped"
    wait_until_gone([job["pid"]])
    assert not is_in_use(studies / "outlives")


class TestFoldersOfOthers:
    @pytest.mark.parametrize("path", ["../private", "case/../../private", "/etc", "/", "..", ""])
    def test_are_refused_by_every_tool(self, server, run, path):
        calls = {
            "validate_case": {"case": path},
            "start_study": {"case": path},
            "study_status": {"job": path},
            "study_result": {"job": path},
            "query_results": {"job": path, "table": "hydros"},
            "stop_study": {"job": path},
            "compare_runs": {"first": "run", "second": path},
        }
        for tool, arguments in calls.items():
            with pytest.raises(ToolFailedError, match=r"outside the folders|empty path"):
                server.call(tool, arguments)

    def test_nothing_is_written_there(self, server, place):
        before = sorted(place.rglob("*"))
        for arguments in ({"output": "../private/out"}, {"output": "x/../../out"}, {"warm_start": "../private"}):
            with pytest.raises(ToolFailedError, match="outside the folders"):
                server.start_study(case="case", **arguments)
        assert sorted(place.rglob("*")) == before

    def test_links_do_not_lead_there(self, server, studies, place):
        (studies / "links").mkdir()
        (studies / "links" / "folder").symlink_to(place / "private")
        (studies / "links" / "summary.json").symlink_to(place / "private" / "summary.json")
        try:
            for job in ("links", "links/folder"):
                with pytest.raises(ToolFailedError, match="outside the folders"):
                    server.study_result(job=job)
            with pytest.raises(ToolFailedError, match="outside the folders"):
                server.start("links/folder/out")
            assert not (place / "private" / "out").exists()
        finally:
            shutil.rmtree(studies / "links")

    @pytest.mark.parametrize(
        "policy", [{"path": "../../../private/policy"}, {"boundary": {"path": "../../private/policy.bin"}}]
    )
    def test_a_case_does_not_lead_there(self, server, studies, place, policy):
        case = studies / f"leading-{next(iter(policy))}"
        shutil.copytree(studies / "case", case)
        config = json.loads((case / "config.json").read_text())
        (case / "config.json").write_text(json.dumps(config | {"policy": policy}))

        with pytest.raises(ToolFailedError, match=r"policy\..*outside the folders"):
            server.start_study(case=str(case))
        assert [path.name for path in (place / "private").iterdir()] == ["summary.json"]

    def test_resources_do_not_lead_there(self, server, place):
        for uri in (
            "cobre://runs/studies/../private/summary.json",
            "cobre://runs/studies/%2e%2e/private/summary.json",
            f"cobre://runs/studies/{place}/private/summary.json",
            "cobre://runs/private/./summary.json",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError):
                server.read(uri)


class TestResources:
    def test_are_listed_for_each_run(self, server, run):
        files = {uri.rsplit("/", 1)[1] for uri in server.resources() if uri.startswith("cobre://runs/studies/run/")}

        assert files == {"summary.json", "study.json", "convergence.json", "events.jsonl", "report.html"}
        assert len(server.templates()) == 5

    def test_are_what_the_run_wrote(self, server, run):
        base = "cobre://runs/studies/run"

        assert json.loads(server.read(f"{base}/summary.json")) == json.loads((run / "summary.json").read_text())
        assert json.loads(server.read(f"{base}/study.json"))["name"] == "case"
        bounds = parquet.read_table(run / "training" / "convergence.parquet").to_pylist()
        assert json.loads(server.read(f"{base}/convergence.json")) == bounds
        assert server.read(f"{base}/events.jsonl") == (run / "events.jsonl").read_text()
        assert server.read(f"{base}/report.html").startswith("<!DOCTYPE html>")

    def test_a_report_is_made_where_there_is_none(self, server, run, studies):
        copy = studies / "without report"
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("report.html"))

        uri = next(uri for uri in server.resources() if "without%20report" in uri and uri.endswith("report.html"))

        assert server.read(uri).startswith("<!DOCTYPE html>")
        assert not (copy / "report.html").exists()

    def test_that_are_not_there(self, server, studies):
        (studies / "empty").mkdir()

        with pytest.raises(MCPError, match=r"has no summary\.json"):
            server.read("cobre://runs/studies/empty/summary.json")
        with pytest.raises(MCPError, match="does not exist"):
            server.read("cobre://runs/studies/nothing/summary.json")


class TestBadInput:
    @pytest.mark.parametrize(
        ("tool", "arguments", "words"),
        [
            ("validate_case", {}, "case"),
            ("validate_case", {"case": 7}, "valid string"),
            ("validate_case", {"case": "nothing"}, "does not exist"),
            ("start_study", {"case": "case", "output": "n", "iterations": 0}, "greater than or equal to 1"),
            ("start_study", {"case": "case", "output": "n", "workers": 10_000}, "at most"),
            ("start_study", {"case": "case", "output": "n", "backend": "pigeon"}, "'auto', 'local', 'shm' or 'tcp'"),
            ("start_study", {"case": "case", "output": "run"}, "resume or overwrite"),
            ("start_study", {"case": "case", "output": "case"}, "holds the case itself"),
            ("start_study", {"case": "case", "output": "."}, "holds the case itself"),
            ("study_status", {"job": "case"}, "no study was run"),
            ("study_status", {"job": "run", "wait_s": 1e9}, "less than or equal to 60"),
            ("query_results", {"job": "case"}, "holds no whole results"),
            ("query_results", {"job": "run", "table": "nothing"}, "there is no table"),
            ("query_results", {"job": "run", "table": "costs", "limit": 10**6}, "less than or equal to 1000"),
            ("query_results", {"job": "run", "table": "costs", "columns": ["nothing"]}, "no column nothing"),
            ("compare_runs", {"first": "run", "second": "case"}, "case"),
            ("fly", {}, "fly"),
        ],
    )
    def test_is_answered_in_words(self, server, run, tool, arguments, words):
        with pytest.raises(ToolFailedError) as caught:
            server.call(tool, arguments)

        assert words in str(caught.value)
        assert "Traceback" not in str(caught.value)

    def test_half_an_output_directory(self, server, run, studies):
        half = studies / "half-written"
        shutil.copytree(run, half)
        (half / "summary.json").write_text('{"digest": ')
        (half / "events.jsonl").write_text('{"event":"run_started","time":1.0}\n{"event":"iter')

        assert server.study_status(job="half-written")["state"] == "killed"
        with pytest.raises(ToolFailedError, match=r"summary\.json cannot be read"):
            server.study_result(job="half-written")
        with pytest.raises(ToolFailedError, match=r"summary\.json"):
            server.compare_runs(first="run", second="half-written")


class TestCommand:
    def test_needs_folders(self, tmp_path):
        for arguments in ((), ("--root", str(tmp_path / "nothing"))):
            done = _command("-m", "cobre.cli", "mcp", *arguments)
            assert done.returncode == 2
            assert "--root" in done.stderr

    def test_ends_with_its_input(self, tmp_path):
        done = _command("-m", "cobre.cli", "mcp", "--root", str(tmp_path))

        assert (done.returncode, done.stdout) == (0, "")

    def test_says_how_to_install_what_is_missing(self, tmp_path):
        program = "import sys; sys.modules['mcp'] = None; from cobre.cli.main import main; main(prog_name='cobre')"
        done = _command("-c", program, "mcp", "--root", str(tmp_path))

        assert done.returncode == 9
        assert "pip install 'cobre[mcp]'" in done.stderr


def _command(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
