"""Ranks that the parent starts one by one, exchanges messages with, signals and reaps."""

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from cobre.comm.launch.spawning import without_rank_variables
from cobre.comm.testing.harness import Setting
from cobre.comm.testing.profiles import RankOptions

Event = Mapping[str, Any]


class PlanError(Exception):
    """A plan could not be carried out: a rank did not report, or ended too early."""


class PlanProcess:
    """One process of a plan. A thread reads its events, so that it never blocks on a full pipe."""

    def __init__(self, rank: int, command: Sequence[str], environment: Mapping[str, str], deadline: float) -> None:
        self.rank = rank
        self._deadline = deadline
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - collect() closes it
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            process_group=0,
        )
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._seen: list[Event] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._process.pid

    def wait_for(self, name: str) -> Event:
        """Wait for the first event of this name, which may have arrived already."""
        for event in self._seen:
            if event["event"] == name:
                return event
        while (heard := self._next(name)) is not None:
            self._seen.append(heard)
            if heard["event"] == name:
                return heard
        raise PlanError(f"rank {self.rank} ended without '{name}': {self.transcript()}")

    def has_ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None

    def wait_for_end(self) -> int:
        """Return the exit code; the process must end before the plan's deadline."""
        try:
            return self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise PlanError(f"rank {self.rank} does not end: {self.transcript()}") from None

    def send_command(self, word: str) -> None:
        """Send a command that the rank waits for."""
        if self._process.stdin is None:
            raise PlanError(f"rank {self.rank} has no stdin")
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()

    def send_signal(self, signum: signal.Signals) -> None:
        """Send a signal to the process."""
        self._process.send_signal(signum)

    def wait_until_asleep(self) -> None:
        """Wait until the kernel reports the process as sleeping, stopped or dead."""
        while time.monotonic() < self._deadline:
            if self._state() in "SDTtZX":
                return
            time.sleep(0.002)
        raise PlanError(f"rank {self.rank} never went to sleep: {self.transcript()}")

    def transcript(self) -> str:
        """All events and errors of the rank, for error messages."""
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip()
        events = " ".join(json.dumps(event) for event in self._seen)
        return f"{events} {errors}".strip() or "no output"

    def collect(self) -> None:
        """Kill the process if it is still running, reap it, and close its files."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _next(self, name: str) -> Event | None:
        try:
            event = self._events.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            raise PlanError(f"rank {self.rank} never reported '{name}': {self.transcript()}") from None
        if event is None:
            self._events.put(None)  # for the next call: the end is permanent
        return event

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                with suppress(ValueError):  # a line that was cut off by a kill
                    self._events.put(json.loads(line))
        self._events.put(None)

    def _state(self) -> str:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "X"


class Ranks:
    """The processes of one plan. Leaving the `with` block kills and reaps all of them."""

    def __init__(self, setting: Setting, environment: Mapping[str, str], limit_s: float) -> None:
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
            process.collect()

    def start(self, rank: int, task: Mapping[str, Any], size: int | None = None, **options: Any) -> PlanProcess:
        """Start one rank; `options` override those of the world (timeouts)."""
        rank_environment = self.setting.profile.rank_environment
        if rank_environment is None:
            raise PlanError(f"the profile of {self.setting.profile.name} has no rank_environment")
        own = RankOptions(self.world, rank, size or self.setting.size, **options)
        return self.start_with(rank, task, rank_environment(own) | dict(self.setting.variant.environment or {}))

    def start_with(self, rank: int, task: Mapping[str, Any], variables: Mapping[str, str]) -> PlanProcess:
        """Start one process with these variables, and without those of an outer world."""
        command = [*self.prefix, sys.executable, "-m", "cobre.comm.testing.rank", json.dumps(task)]
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
