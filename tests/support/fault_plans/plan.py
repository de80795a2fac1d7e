"""Fault plans: the ranks that a plan starts one by one, the registry, and checks of the survivors' reports."""

import hashlib
import json
import os
import platform
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from event_process import Event, EventProcess

from cobre.comm import errors
from cobre.comm.config import DEFAULT_TCP_PORT, ShmConfig, TcpConfig
from cobre.comm.launch.spawning import without_rank_variables
from cobre.comm.testing.case import Grid, Params, single_cell
from cobre.comm.testing.harness import CellSetting


class PlanError(Exception):
    """A plan could not be carried out: a rank did not report, or ended too early."""


@dataclass(frozen=True, slots=True)
class RankOptions:
    """One rank of a world whose ranks are started one by one, for fault plans: the launcher would stop the others.

    world: a name that is unique to the world. Timeouts are in seconds.
    """

    world: str
    rank: int
    size: int
    timeout_s: float = 60.0
    connect_timeout_s: float = 20.0
    operation_timeout_s: float | None = None


def _shm_rank(options: RankOptions) -> dict[str, str]:
    """Return the environment variables of one rank."""
    return ShmConfig(
        name=options.world,
        rank=options.rank,
        size=options.size,
        timeout_s=options.timeout_s,
        connect_timeout_s=options.connect_timeout_s,
        operation_timeout_s=options.operation_timeout_s,
    ).to_env()


def _tcp_rank(options: RankOptions) -> dict[str, str]:
    """Return the environment variables of one rank; address, port and secret are derived from the world's name."""
    coordinator, port = _address_of(options.world)
    return TcpConfig(
        coordinator=coordinator,
        rank=options.rank,
        size=options.size,
        port=port,
        timeout_s=options.timeout_s,
        connect_timeout_s=options.connect_timeout_s,
        operation_timeout_s=options.operation_timeout_s,
        secret=hashlib.sha256(options.world.encode()).hexdigest(),
        run_id=options.world,
    ).to_env()


def _address_of(world: str) -> tuple[str, int]:
    """Return a loopback address for each world if the system has many (Linux), else a port for each."""
    digest = hashlib.sha256(world.encode()).digest()
    if platform.system() == "Linux":
        return f"127.{digest[0] % 254 + 1}.{digest[1]}.{digest[2] % 254 + 1}", DEFAULT_TCP_PORT
    return "127.0.0.1", 20000 + int.from_bytes(digest[:2]) % 12000


RANK_ENVIRONMENTS: Mapping[str, Callable[[RankOptions], dict[str, str]]] = {"shm": _shm_rank, "tcp": _tcp_rank}
"""The variables by which a single process joins a world, by backend; MPI's ranks cannot be started one by one."""


class PlanProcess(EventProcess):
    """One process of a plan, whose events must arrive before the plan's deadline."""

    def __init__(self, rank: int, command: Sequence[str], environment: Mapping[str, str], deadline: float) -> None:
        self.rank = rank
        self._deadline = deadline
        self._seen: list[Event] = []
        super().__init__(command, environment)

    def wait_for(self, name: str) -> Event:
        """Wait for the first event of this name, which may have arrived already."""
        for earlier in self._seen:
            if earlier["event"] == name:
                return earlier
        while (event := self._next(name)) is not None:
            self._seen.append(event)
            if event["event"] == name:
                return event
        raise PlanError(f"rank {self.rank} ended without '{name}': {self.transcript()}")

    def has_ended(self) -> bool:
        """Return whether the process has exited."""
        return self.process.poll() is not None

    def wait_for_end(self) -> int:
        """Return the exit code; the process must end before the plan's deadline."""
        try:
            return self.process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise PlanError(f"rank {self.rank} does not end: {self.transcript()}") from None

    def send_signal(self, signum: signal.Signals) -> None:
        """Send a signal to the process."""
        self.process.send_signal(signum)

    def wait_until_asleep(self) -> None:
        """Wait until the kernel reports the process as sleeping, stopped or dead."""
        while time.monotonic() < self._deadline:
            if self._state() in "SDTtZX":
                return
            time.sleep(0.002)
        raise PlanError(f"rank {self.rank} never went to sleep: {self.transcript()}")

    def transcript(self) -> str:
        """Return all events and errors of the rank, for error messages."""
        events = " ".join(json.dumps(event) for event in self._seen)
        return f"{events} {self.errors()}".strip() or "no output"

    def _next(self, name: str) -> Event | None:
        try:
            return self.next_event(self._deadline)
        except TimeoutError:
            raise PlanError(f"rank {self.rank} never reported '{name}': {self.transcript()}") from None

    def _state(self) -> str:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "X"


class Ranks:
    """The processes of one plan. Leaving the `with` block kills and reaps all of them."""

    def __init__(self, setting: CellSetting, environment: Mapping[str, str], limit_s: float) -> None:
        self.setting = setting
        self.deadline = time.monotonic() + limit_s
        self.world = f"cobre-{secrets.token_hex(6)}"
        self.prefix: Sequence[str] = ()
        self.options: Mapping[str, str] = {}  # more variables for every rank
        self._environment = environment
        self._processes: list[PlanProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.end()

    def start(self, rank: int, task: Mapping[str, Any], size: int | None = None, **options: Any) -> PlanProcess:
        """Start one rank; `options` override those of the world (timeouts)."""
        rank_environment = RANK_ENVIRONMENTS[self.setting.profile.name]
        rank_options = RankOptions(self.world, rank, size or self.setting.size, **options)
        return self.start_with(
            rank, task, rank_environment(rank_options) | dict(self.setting.variant.environment or {})
        )

    def start_with(self, rank: int, task: Mapping[str, Any], variables: Mapping[str, str]) -> PlanProcess:
        """Start one process with these variables, and without those of an outer world."""
        command = [*self.prefix, sys.executable, "-m", "fault_plans.rank_program", json.dumps(task)]
        environment = {
            **without_rank_variables(os.environ),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **self._environment,
            **variables,
            **self.options,
        }
        process = PlanProcess(rank, command, environment, self.deadline)
        self._processes.append(process)
        return process

    def start_all(self, task: Mapping[str, Any], **options: Any) -> list[PlanProcess]:
        """Start every rank of the setting's size."""
        return [self.start(rank, task, **options) for rank in range(self.setting.size)]


# Fault plans and their registry.


PlanFunction: TypeAlias = Callable[[Ranks, Params], Sequence[str]]
"""Starts ranks, injects a fault, and returns descriptions of what violates the contract."""


class NotPermittedError(Exception):
    """The plan needs a permission that this machine lacks; the text names it."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault to inject.

    clauses: the numbers of the clauses of `cobre.comm.communicator` that it checks.
    grid: its parameters for a number of ranks.
    backend: the only backend that it applies to; empty: all.
    """

    id: str
    clauses: tuple[int, ...]
    run: PlanFunction
    grid: Grid
    backend: str = ""


_registry: dict[str, FaultPlan] = {}


def fault(
    identifier: str, clauses: tuple[int, ...], *, grid: Grid = single_cell, backend: str = ""
) -> Callable[[PlanFunction], PlanFunction]:
    """Register a function as a fault plan, with the id "faults/IDENTIFIER"."""

    def register(function: PlanFunction) -> PlanFunction:
        name = f"faults/{identifier}"
        _registry[name] = FaultPlan(name, clauses, function, grid, backend)
        return function

    return register


def registered() -> Mapping[str, FaultPlan]:
    """Return the plans of all modules that have been imported."""
    return _registry


# Checks of the survivors' reports; each returns descriptions of violations.


BOUND_S = 2.0
"""The longest time allowed from the death of a rank to the error on all others."""


def check_failure(
    survivor: PlanProcess, error: str, failed: PlanProcess, operations: Sequence[str], words: Sequence[str] = ()
) -> list[str]:
    """Check that the error names the failed rank, its host and pid, and the call, and that later calls raise."""
    saw = survivor.wait_for("saw")
    if saw["error"] != error:
        return [f"rank {survivor.rank}: expected {error} about rank {failed.rank}, got {saw}"]
    expected = {"ranks": [failed.rank], "pids": [failed.pid], "hosts": [socket.gethostname()]}
    problems = [
        f"{field} should be {value}, not {saw[field]}" for field, value in expected.items() if saw[field] != value
    ]
    if saw["operation"] not in operations:
        problems.append(f"operation should be one of {operations}, not {saw['operation']}")
    if saw["sequence"] != saw["own_sequence"]:
        problems.append(f"call #{saw['own_sequence']} failed, but the error says #{saw['sequence']}")
    return [
        f"rank {survivor.rank}: {problem}" for problem in problems + _missing_words(saw, failed, words) + _after(saw)
    ]


def check_message(survivor: PlanProcess, error: str, words: Sequence[str]) -> list[str]:
    """Check the type and words of the error, and that later calls are refused."""
    saw = survivor.wait_for("saw")
    if saw["error"] != error:
        return [f"rank {survivor.rank}: expected {error}, got {saw}"]
    missing = [f"the message does not say '{word}': {saw['message']}" for word in words if word not in saw["message"]]
    return [f"rank {survivor.rank}: {problem}" for problem in missing + _after(saw)]


def check_in_time(survivor: PlanProcess, since: float, bound_s: float = BOUND_S) -> list[str]:
    """Check that the error came soon after the death, or after the survivor's own call if that was later."""
    saw = survivor.wait_for("saw")
    begin = max(since, survivor.wait_for("calling")["time"])
    seconds = saw["at"] - begin
    return [f"rank {survivor.rank} noticed after {seconds:.2f} s, allowed are {bound_s} s"] if seconds > bound_s else []


def check_closed(process: PlanProcess) -> list[str]:
    """Check that the rank closed its communicator and exited with code 0."""
    state = process.wait_for("closed")["state"]
    code = process.wait_for_end()
    return [] if (state, code) == ("closed", 0) else [f"rank {process.rank} ended as {state} with exit code {code}"]


def check_refused(process: PlanProcess, error: str, words: Sequence[str]) -> list[str]:
    """Check that the rank could not join, for that reason or a finer one (a subclass), and in those words."""
    refused = process.wait_for("refused")
    process.wait_for_end()
    kind = getattr(errors, refused["error"], None)
    if kind is None or not issubclass(kind, getattr(errors, error)):
        return [f"rank {process.rank}: expected {error}, got {refused}"]
    return [
        f"rank {process.rank}: the message does not say '{word}': {refused['message']}"
        for word in words
        if word not in refused["message"]
    ]


def check_completed(process: PlanProcess) -> list[str]:
    """Check that the rank's call succeeded after all."""
    saw = process.wait_for("saw")
    return [f"rank {process.rank}: expected no error, got {saw}"] if saw["error"] else check_closed(process)


def _missing_words(saw: Event, failed: PlanProcess, words: Sequence[str]) -> list[str]:
    wanted = (
        f"rank {failed.rank}",
        str(failed.pid),
        socket.gethostname(),
        f"#{saw['sequence']}",
        saw["operation"],
        *words,
    )
    return [f"the message does not say '{word}': {saw['message']}" for word in wanted if word not in saw["message"]]


def _after(saw: Event) -> list[str]:
    if (saw["state"], saw["later"]) == ("broken", ["CommunicatorBrokenError"]):
        return []
    return [f"after the failure the communicator is {saw['state']} and calls raise {saw['later']}"]
