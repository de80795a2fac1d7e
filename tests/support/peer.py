"""cobre-python, the Rust program, as a second opinion where it is installed."""

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("peer_program.py")
TIMEOUT_S = 300
Bounds = list[tuple[float, float]]  # lower and upper, by iteration


def peer_python() -> Path:
    """Its interpreter; skips the test where there is none."""
    python = Path(os.environ.get("COBRE_PEER_PYTHON", ROOT / ".venv-peer" / "bin" / "python"))
    if not python.exists():
        pytest.skip("cobre-python is not here to compare with: `make peer-environment` (needs Python 3.12 or newer)")
    if missing := _missing(python):
        pytest.skip(f"cobre-python cannot be compared with ({missing}): `make peer-environment` completes it")
    return python


@cache
def _missing(python: Path) -> str:
    """What its environment lacks, in the words of its interpreter; empty when all is there."""
    command = [python, "-I", "-c", "import cobre, numpy, pyarrow"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def peer_tables(cases: Sequence[Path]) -> list[dict]:
    """Bounds, and inflows, lags and costs of its simulations, case by case."""
    command = [peer_python(), "-I", PROGRAM.with_name("peer_tables.py"), *cases]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def peer_bounds(cases: Sequence[Path]) -> list[Bounds]:
    """The bounds that it finds, case by case. It has our package's name: nothing of ours may be on its path."""
    command = [peer_python(), "-I", PROGRAM, *cases]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return [[tuple(row) for row in rows] for rows in json.loads(done.stdout.splitlines()[-1])]
