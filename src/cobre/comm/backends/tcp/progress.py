"""What a rank's heartbeats say: which call it is in, and whom it waits for."""

from collections.abc import Callable, Collection

from cobre.comm.backends.tcp.protocol import Heartbeat


class Progress:
    """Where this rank is in the sequence of calls. Written by the caller's thread, read by the monitor.

    Without a lock: each field is one number or one reference, written by one thread and read whole by the other. A
    heartbeat that mixes two calls is corrected by the next one; nothing is decided by a single one.

    serving: the call that this rank is in, or was in last; completed: the last that it has finished. They differ
    exactly while a call is under way.
    """

    def __init__(self) -> None:
        self.serving = 0
        self.completed = 0
        self.operation = 0
        self.waits_for_host = False
        """In a call, and not yet through to the other hosts: nobody looks at their connections."""
        self.missing: Callable[[], Collection[int]] = tuple
        self.label: Callable[[], str] = str
        self._last_sent = 0  # the call that the previous heartbeat was about

    def heartbeat(self) -> Heartbeat:
        """What the next heartbeat says. The label, which takes time to look up, is sent only once a call is stuck."""
        in_call = self.serving != self.completed
        missing = tuple(sorted(self.missing())) if in_call else ()
        label = self.label() if self.serving == self._last_sent else ""
        self._last_sent = self.serving
        return Heartbeat(self.serving, self.operation, in_call, missing, label)
