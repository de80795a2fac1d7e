"""The program of the orphan reaper: reads groups until end of file, then ends them, for the parent has gone.

A group is known by its leader and that process's start, so that nobody who got the number later is ever signalled.

Run by its path, not as part of the package, so that it starts in milliseconds: standard library only.
"""

import contextlib
import os
import signal
import sys
import time

KILL_LIMIT_S = 5.0
POLL_S = 0.005
WHOLE_GROUP = 1 << 2  # PIDFD_SIGNAL_PROCESS_GROUP
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def main() -> None:
    """Follow "+leader start", "-leader" and "=segment" lines from stdin to their end."""
    groups: dict[int, ProcessGroup] = {}
    segments: set[str] = set()
    for line in sys.stdin:
        if line.startswith("="):
            segments.add(line[1:].strip())
        elif line.startswith("+"):
            leader, start = map(int, line[1:].split())
            groups[leader] = ProcessGroup(leader, start)
        elif (released := groups.pop(int(line[1:]), None)) is not None:
            released.close()
    kill_groups(groups)
    unlink_segments(segments)


class ProcessGroup:
    """A group whose leader, at the time of the call, was not collected yet, and began at `start` (0: not known)."""

    def __init__(self, leader: int, start: int) -> None:
        self._leader = leader
        self._start = start
        self.descriptor = self._open()
        """Becomes readable when the leader ends; None where there is none."""

    def _open(self) -> int | None:
        try:
            descriptor = os.pidfd_open(self._leader)
        except (AttributeError, OSError):  # none on this platform; a sandbox that forbids it; too many; gone
            return None
        # Looked at after opening: only now is it certain whom the descriptor means.
        if start_ticks_of(self._leader) == self._start:
            return descriptor
        os.close(descriptor)
        return None

    def signal(self, signum: int) -> bool:
        """Reach the leader and everything that it has started; False: nobody is left, or they may not be signalled."""
        try:
            if not self._signal_by_descriptor(signum):
                self._signal_by_number(signum)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal_by_descriptor(self, signum: int) -> bool:
        """Whether the system can do this: Linux 6.9. The only way that has no gap between looking and signalling."""
        if self.descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(self.descriptor, signum, None, WHOLE_GROUP)
        except ProcessLookupError:
            raise
        except OSError:
            return False
        return True

    def _signal_by_number(self, signum: int) -> None:
        # As long as the group has members nobody else can get its number, whether its leader is still there or not.
        if start_ticks_of(self._leader) not in (0, self._start):
            raise ProcessLookupError
        os.killpg(self._leader, signum)

    def close(self) -> None:
        """Give the descriptor back."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = None


def start_ticks_of(pid: int) -> int:
    """When a process began, in ticks since the machine did, dead but uncollected ones included; 0: not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - pathlib would triple the start
            return int(stream.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def unlink_segments(names: set[str]) -> None:
    """Take away the segments in which the ranks met, and those whose names begin with theirs."""
    with contextlib.suppress(OSError):
        for left in os.listdir(SHARED_MEMORY):  # noqa: PTH208 - pathlib would triple the start
            if left in names or any(left.startswith(f"{name}-") for name in names):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(SHARED_MEMORY, left))  # noqa: PTH108, PTH118


def kill_groups(groups: dict[int, ProcessGroup]) -> None:
    """Kill them, and wait until they have gone: only then can nobody make a segment any more."""
    deadline = time.monotonic() + KILL_LIMIT_S
    while groups and time.monotonic() < deadline:
        for leader in [leader for leader, group in groups.items() if not group.signal(signal.SIGKILL)]:
            del groups[leader]
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
