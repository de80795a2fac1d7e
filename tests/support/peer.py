"""The Rust programs cobre-python and novomodelo as second opinions, if they are installed."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("peer_program.py")
TIMEOUT_S = 300
Bounds = list[tuple[float, float]]  # lower and upper, by iteration


def peer_python() -> Path:
    """Return the interpreter of cobre-python; skip the test without one."""
    return _interpreter("cobre-python", "cobre", "COBRE_PEER_PYTHON", ".venv-peer")


def novomodelo_python() -> Path:
    """Return the interpreter of novomodelo and its bridge; skip the test without one."""
    return _interpreter("novomodelo", "novomodelo, novomodelo_bridge", "COBRE_NOVOMODELO_PYTHON", ".venv-novomodelo")


def _interpreter(name: str, modules: str, variable: str, folder: str) -> Path:
    python = Path(os.environ.get(variable, ROOT / folder / "bin" / "python"))
    if not python.exists():
        pytest.skip(f"{name} is not here to compare with: `make peer-environment` (needs Python 3.12 or newer)")
    if missing := _missing(python, modules):
        pytest.skip(f"{name} cannot be compared with ({missing}): `make peer-environment` completes it")
    return python


@cache
def _missing(python: Path, modules: str) -> str:
    """Return the import error of an interpreter that lacks modules; empty if it has them all."""
    command = [python, "-I", "-c", f"import {modules}, numpy, pyarrow"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def peer_tables(cases: Iterable[Path], tables: Mapping[str, Sequence[str]]) -> list[dict]:
    """Return by case the peer's (lower, upper) bounds, its summary by scenario, and some columns of simulated tables.

    tables: columns by table.
    """
    command = [peer_python(), "-I", PROGRAM.with_name("peer_tables.py"), json.dumps(tables), *cases]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def peer_bounds(cases: Sequence[Path]) -> list[Bounds]:
    """Return the peer's bounds by case. It has our package's name, so our package must not be on its path."""
    command = [peer_python(), "-I", PROGRAM, *cases]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return [[tuple(row) for row in rows] for rows in json.loads(done.stdout.splitlines()[-1])]
