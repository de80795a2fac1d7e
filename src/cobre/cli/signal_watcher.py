"""Notices SIGINT and SIGTERM beside their handlers, so that a display can say that a run is stopping."""

import os
import signal
import threading


class SignalWatcher:
    """Python writes the number of every signal into a pipe; handlers are left as they are."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous: int | None = None
        if threading.current_thread() is threading.main_thread():  # elsewhere Python refuses
            self._previous = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._has_come = False

    def has_arrived(self) -> bool:
        """Whether SIGINT or SIGTERM has arrived."""
        try:
            numbers = os.read(self._reader, 4096)
        except BlockingIOError:
            numbers = b""
        self._has_come |= any(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)
        return self._has_come

    def close(self) -> None:
        """Close the pipe, and restore the previous wakeup descriptor."""
        if self._previous is not None:
            signal.set_wakeup_fd(self._previous)
        os.close(self._reader)
        os.close(self._writer)
