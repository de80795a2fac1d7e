"""The process behind a study that this server has not started: known by the lock that it holds, reached by a pidfd."""

import os
import re
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from cobre.io.storage.untrusted_file import read_untrusted
from cobre.mcp.errors import JobError
from cobre.runs.files import LOCK_FILE

_OWNER = re.compile(r"pid (\d+) on (\S+)")
_LOCKS = Path("/proc/locks")


def signal_owner(output: Path, signals: Sequence[signal.Signals]) -> None:
    """Send the signals to the process that holds the directory; nothing when it has ended by itself.

    A file could name any process, and a number may be somebody else's by now: only the holder of the lock gets them.
    """
    pid, host = _named_owner(output)
    if host != socket.gethostname():
        raise _elsewhere(output, pid, host)
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError) as error:  # none on this platform, or a sandbox that forbids it
        raise _elsewhere(output, pid, host) from error
    try:
        # Looked at after opening: from now on the descriptor means whoever has the number at this moment.
        if not _holds_lock(pid, output / LOCK_FILE):
            raise _elsewhere(output, pid, host)
        for signum in signals:
            signal.pidfd_send_signal(process, signum)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise JobError(f"process {pid} belongs to another user: ask them to stop it") from error
    finally:
        os.close(process)


def _named_owner(output: Path) -> tuple[int, str]:
    try:
        owner = _OWNER.search(read_untrusted(output / LOCK_FILE, 1000).decode(errors="replace"))
    except OSError:
        owner = None
    if owner is None:
        raise JobError(f"the process that runs the study in {output} is not known: stop it where it was started")
    return int(owner[1]), owner[2]


def _elsewhere(output: Path, pid: int, host: str) -> JobError:
    return JobError(f"the study in {output} is run by process {pid} on {host}: stop it there (kill -INT {pid})")


def _holds_lock(pid: int, lock: Path) -> bool:
    """Whether the kernel lists this process as the holder: `1: FLOCK ADVISORY WRITE 1234 fe:01:5678 0 EOF`."""
    try:
        inode = lock.lstat().st_ino
        holders = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return False
    return any(
        fields[1] != "->" and int(fields[4]) == pid and fields[5].rpartition(":")[2] == str(inode) for fields in holders
    )
