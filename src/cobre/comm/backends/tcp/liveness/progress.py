"""The contents of a rank's heartbeats: which call it is in, and which ranks it waits for."""

from collections.abc import Callable, Collection

from cobre.comm.backends.tcp.wire.control_messages import Heartbeat


class Progress:
    """How far this rank has got in the sequence of calls. Written by the caller's thread, read by the monitor's.

    There is no lock: each field is one number or one reference, written by one thread and read atomically by the other.
    A heartbeat that mixes two calls is corrected by the next; no decision rests on a single one.

    started: the last call that this rank has started; completed: the last that it has finished. They differ exactly
    while a call is under way.
    """

    def __init__(self) -> None:
        # A world begins in call 0, in which ranks find their nodes (`node_discovery`). Otherwise the record of a rank
        # that died before it would be about call 1, and call 0 would fail without naming that rank.
        self.started = 0
        self.completed = -1
        self.operation = 0
        self.waits_inside_node = False
        """In a call, and still waiting for ranks of this node: nobody is looking at the connections to other nodes."""
        self.missing: Callable[[], Collection[int]] = tuple
        self.label: Callable[[], str] = str
        self._last_sent = 0  # the call that the previous heartbeat was about

    def heartbeat(self) -> Heartbeat:
        """The next heartbeat. The label, which takes time to look up, is included once a call lasts for two of them."""
        in_call = self.started != self.completed
        missing = tuple(sorted(self.missing())) if in_call else ()
        label = self.label() if self.started == self._last_sent else ""
        self._last_sent = self.started
        return Heartbeat(self.started, self.operation, in_call, missing, label)
