"""A process under test that reports events, as JSON lines on stdout, and reads commands from stdin."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]


class EventProcess:
    """A started process. A thread reads its events, so that it never blocks on a full pipe."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - end() closes it
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            process_group=0,
        )
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self.process.pid

    def next_event(self, deadline: float) -> Event | None:
        """Return the next event, or None once the process has ended. Raises `TimeoutError` at the deadline."""
        try:
            event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None
        if event is None:
            self._events.put(None)  # for the next call: the end is permanent
        return event

    def send_command(self, word: str = "go") -> None:
        """Send a command that the process waits for."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def errors(self) -> str:
        """Return what the process has written to stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def kill(self) -> None:
        """Kill the process and its descendants."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process if it is still running, reap it, and close its files."""
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _read(self) -> None:
        if self.process.stdout is not None:
            for line in self.process.stdout:
                with suppress(ValueError):  # a line that was cut off by a kill
                    self._events.put(json.loads(line))
        self._events.put(None)
