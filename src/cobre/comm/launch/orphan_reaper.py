"""The program of the orphan reaper: reads process groups until end of file, which is the launcher's death; kills them.

A group is identified by the pid of its leader and that process's start time, so that a process that was given the same
pid later is never signalled.

Run by its path, not as part of the package, so that it starts in milliseconds: it uses the standard library only.
"""

import contextlib
import os
import signal
import sys
import time

KILL_LIMIT_S = 5.0
POLL_S = 0.005
WHOLE_GROUP = 1 << 2  # PIDFD_SIGNAL_PROCESS_GROUP
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - as in `cobre.comm.cores`, which is not imported here


def main() -> None:
    """Read "+leader start", "-leader" and "=segment" lines until end of file, then kill and unlink."""
    groups: dict[int, ProcessGroup] = {}
    segments: set[str] = set()
    for line in sys.stdin:
        if line.startswith("="):
            segments.add(line[1:].strip())
        elif line.startswith("+"):
            leader, start = map(int, line[1:].split())
            groups[leader] = ProcessGroup(leader, start)
        elif (ended_group := groups.pop(int(line[1:]), None)) is not None:
            ended_group.close()  # the launcher reaps its leader next: then the number may be given to another group
    kill_groups(groups)
    unlink_segments(segments)


class ProcessGroup:
    """A process group. Its leader must not have been reaped yet; start: the leader's start time (0: unknown)."""

    def __init__(self, leader: int, start: int) -> None:
        self._leader = leader
        self._start = start
        self.descriptor = self._open_pidfd()
        """A pidfd, which becomes readable when the leader ends; None if there is none."""

    def _open_pidfd(self) -> int | None:
        try:
            descriptor = os.pidfd_open(self._leader)
        except (AttributeError, OSError):  # not on this platform; forbidden by a sandbox; too many files; already gone
            return None
        # Compared after opening: only now is it certain which process the descriptor refers to.
        if start_ticks_of(self._leader) == self._start:
            return descriptor
        os.close(descriptor)
        return None

    def signal(self, signum: int) -> bool:
        """Signal the whole group; False if no member is left, or none may be signalled."""
        try:
            if not self._signal_by_descriptor(signum):
                self._signal_by_number(signum)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal_by_descriptor(self, signum: int) -> bool:
        """Signal by the pidfd, without a race against reuse of the pid; False if the kernel cannot (before 6.9)."""
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
        # As long as the group has members its number is not reused, whether its leader still exists or not.
        if start_ticks_of(self._leader) not in (0, self._start):
            raise ProcessLookupError
        os.killpg(self._leader, signum)

    def close(self) -> None:
        """Close the pidfd; may be repeated."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = None


def start_ticks_of(pid: int) -> int:
    """Return the start time of a process, zombies included, in clock ticks since boot; 0: unknown."""
    fields = _stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def state_of(pid: int) -> str:
    """Return the state of a process as /proc names it, such as "R", "T" (stopped), "Z" (zombie); empty: unknown."""
    return "".join(_stat_fields(pid)[:1])


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the command name, which may contain anything.

    Empty without the file.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - pathlib would triple the start
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []


def unlink_segments(names: set[str]) -> None:
    """Unlink segments of these names, and those derived from them ("NAME-...")."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(SHARED_MEMORY):  # noqa: PTH208 - pathlib would triple the start
            if entry in names or any(entry.startswith(f"{name}-") for name in names):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(SHARED_MEMORY, entry))  # noqa: PTH108, PTH118


def kill_groups(groups: dict[int, ProcessGroup]) -> None:
    """Kill all groups and wait until they are gone: only then can no member create a segment any more."""
    deadline = time.monotonic() + KILL_LIMIT_S
    # Repeatedly: a member may fork while the signals are delivered, and a killed process takes a moment to end.
    while groups and time.monotonic() < deadline:
        for leader in [leader for leader, group in groups.items() if not group.signal(signal.SIGKILL)]:
            del groups[leader]
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
