"""The program of the keeper: reads groups until end of file, then ends them, for the parent has gone.

Run by its path, not as part of the package, so that it starts in milliseconds: standard library only.
"""

import contextlib
import os
import signal
import sys
import time

GONE_WITHIN_S = 5.0
POLL_S = 0.005
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def main() -> None:
    """Follow "+group", "-group" and "=segment" lines from stdin to their end."""
    groups: set[int] = set()
    segments: set[str] = set()
    for line in sys.stdin:
        if line.startswith("="):
            segments.add(line[1:].strip())
        else:
            change = groups.add if line.startswith("+") else groups.discard
            change(int(line[1:]))
    end(groups)
    forget(segments)


def forget(names: set[str]) -> None:
    """Take away the segments in which the ranks met, and those whose names begin with theirs."""
    with contextlib.suppress(OSError):
        for left in os.listdir(SHARED_MEMORY):  # noqa: PTH208 - pathlib would triple the start
            if left in names or any(left.startswith(f"{name}-") for name in names):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(SHARED_MEMORY, left))  # noqa: PTH108, PTH118


def end(groups: set[int]) -> None:
    """Kill them, and wait until they have gone: only then can nobody make a segment any more."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while groups and time.monotonic() < deadline:
        for group in list(groups):
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                groups.discard(group)
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
