"""The program of the keeper: reads groups until end of file, then ends them, for the parent has gone.

Run by its path, not as part of the package, so that it starts in milliseconds: standard library only.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Follow "+group" and "-group" lines from stdin to their end."""
    groups: set[int] = set()
    for line in sys.stdin:
        change = groups.add if line.startswith("+") else groups.discard
        change(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
