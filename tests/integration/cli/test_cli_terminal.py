"""`cobre run` on terminals: wide, narrow, without colour, dumb; and Ctrl-C."""

import json

import pytest
from cli_runs import ONE_PROCESS, QUICK_CASE, TerminalRun, on_terminal

from cobre.cli.error_reporting import ExitCode


@pytest.fixture
def quick(tmp_path):
    return ("run", QUICK_CASE, "-o", tmp_path / "out", "--iterations", 3, "--no-report")


def test_wide_terminal_redraws_table_in_place(quick, tmp_path):
    screen = on_terminal(*quick, "--workers", 2)
    assert screen.code == 0, screen.text
    assert "\x1b[1A" in screen.raw, "the cursor never went up"
    last = screen.text[screen.text.rindex("cobre 0.") :]
    for words in ("2 workers (shm)", "iteration 3 of 3", "lower bound", "mean cost", "gap", "backward", "rank 1"):
        assert words in last
    assert screen.has_colours
    assert f"results in {tmp_path / 'out'}" in screen.text


def test_table_fits_forty_columns(quick):
    screen = on_terminal(*quick, *ONE_PROCESS, columns=40)
    assert screen.code == 0, screen.text
    last = screen.text[screen.text.rindex("finished 3/3") :]
    assert "lower " in last
    table = last.split("stopped after")[0]
    assert max(map(len, table.splitlines())) <= 40


def test_no_colour_codes_without_colour_support(quick):
    screen = on_terminal(*quick, *ONE_PROCESS, NO_COLOR="1")
    assert screen.code == 0, screen.text
    assert "lower bound" in screen.text
    assert not screen.has_colours


@pytest.mark.parametrize("settings", [{"term": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_dumb_terminal_gets_plain_lines(quick, settings):
    screen = on_terminal(*quick, *ONE_PROCESS, **settings)
    assert screen.code == 0, screen.text
    assert "\x1b" not in screen.raw
    assert screen.text.count("\n        3  ") == 1


def test_plain_lines_fit_forty_columns(quick):
    screen = on_terminal(*quick, *ONE_PROCESS, "--plain", columns=40)
    line = next(line for line in screen.text.splitlines() if line.startswith("    3 "))
    assert len(line) <= 40


def test_quiet_suppresses_progress(quick):
    screen = on_terminal(*quick, *ONE_PROCESS, "--quiet")
    assert (screen.code, screen.raw) == (0, "")


def test_json_goes_to_stdout_and_table_to_terminal(quick):
    screen = on_terminal(*quick, *ONE_PROCESS, "--json")
    assert json.loads(screen.text.splitlines()[-1])["iterations"] == 3


def test_error_message_survives_redraw(tmp_path):
    screen = on_terminal("run", QUICK_CASE, "-o", "/proc/nowhere", "--iterations", 1, *ONE_PROCESS)
    assert screen.code == ExitCode.OUTPUT
    assert "cobre: cannot write" in screen.text
    assert screen.raw.count("\x1b[?25l") == screen.raw.count("\x1b[?25h"), "the cursor was not given back"


def test_ctrl_c_keeps_the_policy_and_the_terminal(tmp_path):
    words = ("run", QUICK_CASE, "-o", tmp_path / "out", "--iterations", 100000, "--workers", 2, "--no-report")
    run = TerminalRun(*words)
    run.wait_for(r"iteration \d+ of 100000")
    run.type("\x03")
    screen = run.end()
    assert screen.code == ExitCode.INTERRUPTED
    assert "--resume to continue" in screen.text
    assert screen.raw.rindex("\x1b[?25h") > screen.raw.rindex("\x1b[?25l"), "the cursor stayed hidden"
    assert (tmp_path / "out" / "policy" / "policy.bin").exists()
