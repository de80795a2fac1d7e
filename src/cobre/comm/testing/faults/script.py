"""A rank's side of a fault plan: its orders, its reports, and the commands that it waits for."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cobre.comm.backends.base import Backend
from cobre.comm.testing.report import attempt, refusals


def report_event(event: str, **fields: object) -> None:
    """Report an event to the parent, with the time; flushed before anything else happens."""
    sys.stdout.write(json.dumps({"event": event, "time": time.monotonic(), **fields}) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Script:
    """The communicator and the task that came from the parent."""

    comm: Backend
    task: Mapping[str, Any]

    @property
    def is_victim(self) -> bool:
        """Whether the fault is injected into this rank."""
        return bool(self.comm.rank == self.task["victim"])

    @property
    def is_holdout(self) -> bool:
        """Whether this rank makes the others wait: the last one that is not the victim."""
        last = self.comm.size - 1
        return self.comm.rank == (last if last != self.task["victim"] else last - 1)

    def wait_for_command(self, word: str) -> None:
        """Wait for a command of the parent; exit at end of input, when the parent is gone."""
        for line in sys.stdin:
            if line.strip() == word:
                return
        raise SystemExit(f"end of input while waiting for {word!r}")

    def expect_failure(self, call: Callable[[], object]) -> None:
        """Make a call that should fail, and report everything that a survivor can see."""
        report_event("calling", sequence=self.comm.sequence + 1)
        seen = attempt(call)
        when = time.monotonic()
        sequence = self.comm.sequence
        state = self.comm.state
        later = sorted(set(refusals(self.comm).values())) if seen["error"] else []
        report_event("saw", **seen, at=when, own_sequence=sequence, state=state, later=later)
