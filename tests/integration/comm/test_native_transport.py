"""The shared-memory transport works in a C++ program without an interpreter: `tests/native/transport.cpp`."""

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE_TESTS = Path(__file__).resolve().parents[2] / "native"


@pytest.mark.long  # compiles the transport
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_ranks_without_python_communicate_and_name_the_dead(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(NATIVE_TESTS)
    from instrumented import build_program

    program = tmp_path / "transport"
    build_program("transport", program, "-Wall", "-Wextra", "-Werror")
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ranks as processes, collectives: as expected",
        "ranks as processes, death: as expected",
        "ranks as processes, disagreement: as expected",
        "ranks as threads: as expected",
    ]


def test_transport_includes_no_python():
    native = NATIVE_TESTS.parents[1] / "native"
    reached, waiting = set(), ["shm_transport.hpp", "shm_transport.cpp", "shm_regions.cpp"]
    while waiting:
        text = (native / waiting.pop()).read_text()
        assert "Python.h" not in text and "nanobind" not in text and "numpy" not in text
        headers = [line.split('"')[1] for line in text.splitlines() if line.startswith('#include "')]
        waiting += [name for name in headers if name not in reached]
        reached |= set(headers)
    assert "comm_types.hpp" in reached
