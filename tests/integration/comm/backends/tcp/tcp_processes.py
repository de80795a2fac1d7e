"""Ranks of a tcp world as processes: start them one by one, wait for their messages, command and end them."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tcp_worlds import DEADLINE_S

PROGRAM = Path(__file__).with_name("tcp_rank.py")


class Rank:
    """A started rank; its messages are read line by line."""

    def __init__(self, action, config, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(PROGRAM), action],
            env={**os.environ, **config.to_env(), "PYTHONFAULTHANDLER": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._events = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.process.pid

    def wait_for(self, key, words=""):
        """Return the next event of that kind that contains `words`; discard the events before it."""
        deadline = time.monotonic() + DEADLINE_S
        while event := self._next(key, deadline):
            if key in event and words in str(event[key]):
                return event
        raise AssertionError(f"it ended without '{key}' {words}: {self.process.stderr.read()[-2000:]}")

    def send_command(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def kill(self):
        """Kill the rank and all its descendants at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        self.kill()
        self.process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _next(self, key, deadline):
        try:
            return self._events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"it did not say '{key}' within {DEADLINE_S} s") from None

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # cut off by a kill
                self._events.put(json.loads(line))
        self._events.put(None)
