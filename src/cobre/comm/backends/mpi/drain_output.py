"""Waits until the launcher has read what this process has printed: an abort may overtake it."""

import fcntl
import os
import stat
import struct
import termios
import time

STDOUT, STDERR = 1, 2
POLL_S = 0.001


def drain_output(limit_s: float) -> bool:
    """Wait until the pipes of stdout and stderr are empty, at most that long; whether they are.

    Anything but a pipe counts as empty: files need no reader, and a terminal does not say what it has yet to show.
    """
    deadline = time.monotonic() + limit_s
    while unread := any(map(_unread_bytes, (STDOUT, STDERR))):
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    return not unread


def _unread_bytes(descriptor: int) -> int:
    """Bytes in the pipe behind this descriptor; the writing end may ask, too."""
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:  # closed, or a system on which the writing end may not ask
        return 0
    return int(count)
