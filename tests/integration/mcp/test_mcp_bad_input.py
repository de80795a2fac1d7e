"""Wrong arguments, incomplete runs and usage errors give clear messages."""

import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mcp.server")

from assistant import ToolFailedError

pytestmark = pytest.mark.long


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
            ("start_study", {"case": "case", "output": "case"}, "is the case directory"),
            ("start_study", {"case": "case", "output": "."}, "is the case directory"),
            ("study_status", {"job": "case"}, "not the --output of a run"),
            ("study_status", {"job": "run", "wait_s": 1e9}, "less than or equal to 60"),
            ("query_results", {"job": "case"}, "has no complete results"),
            ("query_results", {"job": "run", "table": "nothing"}, "there is no table"),
            ("query_results", {"job": "run", "table": "costs", "limit": 10**6}, "less than or equal to 1000"),
            ("query_results", {"job": "run", "table": "costs", "columns": ["nothing"]}, "no column nothing"),
            ("compare_runs", {"first": "run", "second": "case"}, "case"),
            ("fly", {}, "fly"),
        ],
    )
    def test_bad_input_gets_readable_error(self, server, run, tool, arguments, words):
        with pytest.raises(ToolFailedError) as caught:
            server.call(tool, arguments)

        assert words in str(caught.value)
        assert "Traceback" not in str(caught.value)

    def test_errors_have_a_kind_and_a_remedy_for_programs(self, server, run):
        with pytest.raises(ToolFailedError) as caught:
            server.query_results(job="run", table="nothing")

        assert (caught.value.details["kind"], caught.value.details["remedy"]) == (
            "QueryError",
            "choose from what the message lists",
        )

    def test_study_that_fails_has_the_details_of_its_error(self, server, studies):
        broken = studies / "broken"
        shutil.copytree(studies / "case", broken)
        (broken / "penalties.json").unlink()
        server.start_study(case="broken", output="failed", report=False, workers=1)

        status = server.finished("failed")

        assert status["state"] == "failed"
        assert status["error_details"]["kind"] == "InvalidCaseError"
        assert status["error_details"]["problems"][0]["file"] == "penalties.json"

    def test_incomplete_output_directory_is_reported(self, server, run, studies):
        half = studies / "half-written"
        shutil.copytree(run, half)
        (half / "summary.json").write_text('{"digest": ')
        (half / "events.jsonl").write_text('{"event":"run_started","time":1.0}\n{"event":"iter')

        # A summary is the last file that a run writes: where there is one, even a damaged one, the run has ended.
        assert server.study_status(job="half-written")["state"] == "finished"
        with pytest.raises(ToolFailedError, match=r"summary\.json cannot be read"):
            server.study_result(job="half-written")
        with pytest.raises(ToolFailedError, match=r"summary\.json"):
            server.compare_runs(first="run", second="half-written")


class TestCommand:
    def test_server_requires_folders(self, tmp_path):
        for arguments in ((), ("--root", str(tmp_path / "nothing"))):
            done = _command("-m", "cobre.cli", "mcp", *arguments)
            assert done.returncode == 2
            assert "--root" in done.stderr

    def test_server_ends_with_its_input(self, tmp_path):
        done = _command("-m", "cobre.cli", "mcp", "--root", str(tmp_path))

        assert (done.returncode, done.stdout) == (0, "")

    def test_error_says_how_to_install_a_missing_library(self, tmp_path):
        program = "import sys; sys.modules['mcp'] = None; from cobre.cli.main import main; main(prog_name='cobre')"
        done = _command("-c", program, "mcp", "--root", str(tmp_path))

        assert done.returncode == 9
        assert "pip install 'pycobre[mcp]'" in done.stderr


def _command(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
