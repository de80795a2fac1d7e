"""Closed, full or broken standard output: results are written, and lost output is a failure."""

import json
import os
import subprocess

import pytest
from cli_runs import COMMAND, LIMIT_S, ONE_PROCESS, QUICK_CASE, cobre

FULL = "> /dev/full"
CLOSED = ">&-"


def run_redirected(where, *words):
    """Run a command with redirections, as a shell does."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {where}', "sh", *COMMAND, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
    )


def run(output):
    return ("run", QUICK_CASE, "--output", output, "--iterations", 2, *ONE_PROCESS)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("finished") / "out"
    assert cobre(*run(output)).returncode == 0
    return output


@pytest.mark.parametrize(("where", "why"), [(CLOSED, "is closed"), (FULL, "No space left on device")])
def test_run_continues_without_standard_output_and_warns_once(finished_run, tmp_path, where, why):
    done = run_redirected(where, *run(tmp_path / "out"))
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and "standard output" in done.stderr and why in done.stderr
    assert cobre("compare", finished_run, tmp_path / "out").returncode == 0
    for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines():
        assert json.loads(line)["event"]


@pytest.mark.parametrize("workers", [1, 2])
def test_run_completes_without_any_standard_stream(finished_run, tmp_path, workers):
    words = ("run", QUICK_CASE, "--output", tmp_path / "out", "--iterations", 2, "--workers", workers)
    done = run_redirected("<&- >&- 2>&-", *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert cobre("compare", finished_run, tmp_path / "out").returncode == 0


@pytest.mark.parametrize("where", [CLOSED, FULL])
def test_lost_json_summary_fails(tmp_path, where):
    done = run_redirected(where, *run(tmp_path / "out"), "--json", "--quiet")
    assert done.returncode == 5 and "printed output is lost" in done.stderr
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("where", [CLOSED, FULL])
@pytest.mark.parametrize(
    "words", [("top", "DIR"), ("compare", "DIR", "DIR"), ("version",), ("--help",), ("--version",)]
)
def test_command_fails_if_its_output_is_lost(finished_run, where, words):
    done = run_redirected(where, *(finished_run if word == "DIR" else word for word in words))
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "printed output is lost" in done.stderr


@pytest.mark.parametrize("where", ["2> /dev/full", "2>&-"])
def test_exit_code_is_correct_without_stderr(tmp_path, where):
    done = run_redirected(where, "report", tmp_path / "none")
    assert (done.returncode, done.stdout, done.stderr) == (8, "", "")


def run_into_closed_pipe(*words):
    """Run a command whose reader is gone before the first line."""
    end, start = os.pipe()
    os.close(end)
    try:
        return subprocess.run(
            [*COMMAND, *map(str, words)], check=False, stdout=start, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S
        )
    finally:
        os.close(start)


def test_broken_pipe_does_not_end_a_run(finished_run, tmp_path):
    done = run_into_closed_pipe(*run(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert cobre("compare", finished_run, tmp_path / "out").returncode == 0


def test_broken_pipe_ends_output_silently():
    done = run_into_closed_pipe("version")
    assert (done.returncode, done.stderr) == (1, "")
