"""Run a training in a separate process and read its results."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sddp.studies import Study

PROGRAMS = Path(__file__).resolve().parent / "programs"
TIMEOUT_S = 1800


class RunFailedError(Exception):
    """Raised when a contender fails; the message is the end of its output."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender. extra: arguments of its program beyond case, threads and iterations."""

    name: str
    python: Path
    program: str
    extra: tuple[tuple[str, Any], ...] = ()
    flags: tuple[str, ...] = ()

    def run(self, study: Study, threads: int, iterations: int) -> "Run":
        """Train a study once."""
        request = {
            "case": str(study.folder),
            "threads": threads,
            "iterations": iterations,
            "forward_passes": study.forward_passes,
            **dict(self.extra),
        }
        command: list[str | Path] = [self.python, *self.flags, PROGRAMS / self.program, json.dumps(request)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise RunFailedError(f"{self.name} took more than {TIMEOUT_S} s on {study.name}") from error
        if done.returncode != 0:
            raise RunFailedError(f"{self.name} failed on {study.name}: {done.stderr.strip()[-2000:]}")
        return Run(**json.loads(done.stdout.splitlines()[-1]))


def ours() -> Contender:
    """Return the contender with default settings."""
    return Contender("cobre", Path(sys.executable), "train_ours.py", (("solver", "native"),))


def with_checkpoints() -> Contender:
    """Return the contender that writes a checkpoint after every iteration."""
    return Contender(
        "cobre, checkpoints", Path(sys.executable), "train_ours.py", (("solver", "native"), ("checkpoints", True))
    )


def workers(count: int) -> Contender:
    """Return the contender with `num_workers` processes on shm."""
    return Contender(workers_name(count), Path(sys.executable), "train_workers.py", (("workers", count),))


def workers_name(count: int) -> str:
    """Return the name of the contender."""
    return f"cobre, {count} worker{'' if count == 1 else 's'}"


def highspy_loop() -> Contender:
    """Return the contender that runs the same loop with plain calls of highspy."""
    return Contender("highspy loop", Path(sys.executable), "train_ours.py", (("solver", "highspy"),))


def peer(python: Path) -> Contender:
    """Return the contender cobre-python, without our package on its path."""
    return Contender("cobre-python", python, "train_peer.py", flags=("-I",))


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a run. Lists are by iteration; those that the peer does not report are empty."""

    training_s: float
    wall_s: float
    first_lower_bound: float
    first_upper_bound: float
    lower_bound: float
    upper_bound: float
    elapsed_s: list[float]
    baseline_bytes: int
    peak_bytes: int
    resident_bytes: list[int]
    version: str
    cpu_s: float = 0.0  # of the training, user and system
    call_s: float = 0.0
    solves: list[int] = field(default_factory=list)
    pivots: list[int] = field(default_factory=list)
    solver_s: list[float] = field(default_factory=list)
    cuts: int = 0
    cut_stages: int = 0
    dimension: int = 0
    pool_bytes: int = 0
    digest: str = ""
    checkpoint_s: list[float] = field(default_factory=list)
    waiting_s: list[float] = field(default_factory=list)  # by worker, in exchanges
    imbalance_s: list[float] = field(default_factory=list)  # by worker: of that, because others had more work

    @property
    def iteration_s(self) -> list[float]:
        """Return the seconds of each iteration."""
        return [now - before for before, now in zip([0.0, *self.elapsed_s], self.elapsed_s, strict=False)]

    @property
    def us_per_pivot(self) -> float:
        """Return microseconds inside the solver per pivot."""
        return 1e6 * sum(self.solver_s) / max(1, sum(self.pivots))

    @property
    def growth_bytes(self) -> int:
        """Return the memory beyond the interpreter and the libraries."""
        return self.peak_bytes - self.baseline_bytes

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with the memory after the last iteration only."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "resident_bytes"}
        return fields | {"last_resident_bytes": self.resident_bytes[-1]}
