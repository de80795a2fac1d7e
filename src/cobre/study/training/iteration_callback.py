"""`on_iteration` callbacks: called on every iteration; may stop the run, even if its ranks are other processes.

Rank 0 emits an iteration and then waits for the reply on a named pipe, so that the run ends at the same iteration
whether its ranks are this process or others. A stop takes effect with the next iteration, on which all ranks agree.
"""

import os
import select
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from cobre import notebook
from cobre.runs.events import Event, EventListener

IterationCallback = Callable[[dict[str, Any]], object]
"""Called with an iteration; a true value stops the run."""

_CONTINUE, _STOP = b"0", b"1"

POLL_INTERVAL_S = 0.1


@contextmanager
def iteration_replies(callback: IterationCallback | None) -> Iterator[tuple[Path | None, EventListener]]:
    """Yield the pipe for a request and the listener of its run. An exception of the callback ends the run.

    Without a callback there is no pipe, and a notebook shows progress.
    """
    if callback is None:
        with notebook.progress() as emit:
            yield None, emit
        return
    with tempfile.TemporaryDirectory(prefix="cobre-") as folder:
        path = Path(folder) / "replies"
        os.mkfifo(path, 0o600)
        descriptor = os.open(path, os.O_RDWR)  # O_WRONLY would wait for a reader
        try:
            yield path, _replying_listener(callback, descriptor)
        finally:
            os.close(descriptor)


def _replying_listener(callback: IterationCallback, descriptor: int) -> EventListener:
    has_stopped = False

    def emit(event: Event) -> None:
        nonlocal has_stopped
        if event["event"] != "iteration":
            return
        has_stopped = has_stopped or bool(callback(as_iteration(event)))
        os.write(descriptor, _STOP if has_stopped else _CONTINUE)

    return emit


def as_iteration(event: Event) -> dict[str, Any]:
    """Return the argument of `on_iteration`; money is $, and the gap is relative to the lower bound."""
    return {
        "kind": "iteration",
        "iteration": event["iteration"],
        "lower_bound": event["lower_bound"],
        "upper_bound": event["upper_bound"],
        "gap": event["gap"],
        "wall_time_ms": int(1000 * event["elapsed_s"]),
    }


class ReplyPipe:
    """Rank 0's end of the pipe through which a callback replies to iterations; inert without a path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self._descriptor = None if self._path is None else os.open(self._path, os.O_RDWR)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def wants_stop(self, is_ending: Callable[[], bool]) -> bool:
        """Wait for the reply to an iteration and return whether to stop; False as soon as the run is ending anyway."""
        if self._descriptor is None:
            return False
        while not select.select([self._descriptor], [], [], POLL_INTERVAL_S)[0]:
            if is_ending():
                return False
        return os.read(self._descriptor, 1) == _STOP
