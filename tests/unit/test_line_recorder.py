"""The recorder behind `make coverage` counts lines in killed processes, forks and threads."""

import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[1] / "native"
sys.path.append(str(NATIVE))

import line_recorder  # noqa: E402 - in the folder of the programs that use it

MEASURED = """
import os, signal, threading

def in_fork():
    answer = 1
    os.kill(os.getpid(), signal.SIGKILL)
    return answer

def in_thread():
    return 2

def never():
    return 3

if (child := os.fork()) == 0:
    in_fork()
os.waitpid(child, 0)
worker = threading.Thread(target=in_thread)
worker.start()
worker.join()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "measured.py"
    path.write_text(MEASURED)
    return path


def run_recorded(program, folder):
    start = (
        f"import sys, runpy; sys.path.append({str(NATIVE)!r}); import line_recorder; line_recorder.start({folder!r})"
    )
    command = [sys.executable, "-c", f"{start}; runpy.run_path({str(program)!r})"]
    return subprocess.run(command, check=False).returncode


def test_lines_of_killed_processes_forks_and_threads_are_recorded(program, tmp_path):
    folder = tmp_path / "lines"
    line_recorder.prepare(folder, [program, Path(__file__)])
    assert run_recorded(program, str(folder)) == -9
    ran = line_recorder.lines_that_ran(folder)
    texts = MEASURED.splitlines()
    missed = {texts[number - 1].strip() for number in set(range(1, len(texts) + 1)) - set(ran[str(program)])}
    assert missed - {""} == {"return answer", "return 3"}
    assert ran[__file__] == []


def test_nothing_is_recorded_without_a_run(program, tmp_path):
    assert run_recorded(program, str(tmp_path / "none")) == -9
