"""How a large payload passes through the coordinator: parts leave for some workers while they arrive from others."""

from collections.abc import Callable, Collection, Mapping, Sequence

from cobre.comm.backends.tcp.transport.base import DeferredCopy
from cobre.comm.backends.tcp.transport.channel import Channel
from cobre.comm.backends.tcp.transport.streams import PartsReader, PartWriter
from cobre.comm.backends.tcp.transport.waiting import READ, WRITE

# Pieces that are relayed before a rank's part is complete are at least this large. Smaller ones cost more system calls
# than the earlier start gains; 128 KiB, 512 KiB and 1 MiB were measured (ADR 0009).
PIECE_BYTES = 512 * 1024

Sleep = Callable[[Mapping[int, int], set[int]], None]
"""Takes events by descriptor, and the ranks that are waited for; returns when a descriptor is ready."""


class Relay:
    """The streams of one large call, moved in whatever order the sockets allow.

    In a fixed order one slow worker would hold up all others. parts_for: by worker, every rank's part that it gets, by
    rank; None for parts that it has. available, in the methods: by rank, how many bytes of its part have arrived.
    """

    def __init__(
        self,
        channels: Mapping[int, Channel],
        sequence: int,
        parts_for: Mapping[int, Sequence[memoryview | None]],
        sleep: Sleep,
    ) -> None:
        self._channels = channels
        self._sleep = sleep
        self._writers = {
            rank: PartWriter(channels[rank], sequence, parts, PIECE_BYTES) for rank, parts in parts_for.items()
        }

    @property
    def is_writing(self) -> bool:
        """Whether something is still to be sent, now or once it has arrived."""
        return bool(self._writers)

    def run(self, readers: dict[int, PartsReader], available: Sequence[int], copy: DeferredCopy) -> None:
        """Receive and send until all is done. readers: by worker; they advance `available`, the writers follow it."""
        while readers or self._writers:
            moved = _read(readers) + self.write(available)
            # Our own part is copied while the sockets have nothing to do, so it costs no extra time.
            if not moved and (readers or self._writers) and not copy.advance():
                self.sleep(readers, available)
        copy.finish()

    def write(self, available: Sequence[int]) -> int:
        """Send what has arrived, as far as the sockets take it; the number of bytes."""
        total = 0
        for rank, writer in list(self._writers.items()):
            while writer.has_work(available) and (sent := writer.flush()):
                total += sent
            if writer.is_done:
                del self._writers[rank]
        return total

    def sleep(self, readers: Collection[int], available: Sequence[int]) -> None:
        """Wait until bytes arrive from one of the `readers`, or there is room for bytes that can be sent."""
        interests = {self._channels[rank].fd: READ for rank in readers}
        for rank, writer in self._writers.items():
            # Only if there is something to send: an idle socket is always writable, and would end every sleep at once.
            if writer.has_work(available):
                descriptor = self._channels[rank].fd
                interests[descriptor] = interests.get(descriptor, 0) | WRITE
        self._sleep(interests, {*readers, *self._writers})


def _read(readers: dict[int, PartsReader]) -> int:
    total = 0
    for leader, reader in list(readers.items()):
        total += reader.advance()
        if reader.is_done:
            del readers[leader]
    return total
