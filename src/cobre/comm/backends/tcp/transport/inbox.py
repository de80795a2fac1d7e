"""Where the coordinator receives the calls of its workers."""

import numpy as np

from cobre.comm.backends.tcp.transport.base import SMALL_BYTES
from cobre.comm.backends.tcp.transport.channel import Channel
from cobre.comm.backends.tcp.wire.calls import CALL_BYTES, HEADER_BYTES, SIGNATURE_AT
from cobre.comm.backends.tcp.wire.fields import ProtocolError
from cobre.comm.backends.tcp.wire.protocol import PREFIX, Tag
from cobre.comm.buffers import view_of

ALIGNMENT = 64  # bytes; operands are folded where they arrived, and this suits every numeric dtype


class Inbox:
    """Receives one worker's call: its header, and a small payload behind it at an aligned address.

    Reused from call to call, so that a small collective allocates nothing.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.view = _aligned(SMALL_BYTES)
        self.expect(0)

    def expect(self, payload_bytes: int) -> None:
        """Prepare for the next call, whose payload has this many bytes if the worker makes the same call as we do."""
        self.received = 0
        self.wanted = HEADER_BYTES + payload_bytes
        if self.wanted > len(self.view):
            self.view = _aligned(payload_bytes)
        self._prefix = PREFIX.pack(CALL_BYTES + payload_bytes, Tag.CALL)

    def advance(self) -> None:
        """Receive what has arrived; never blocks, never reads past this call."""
        self.received += self.channel.receive(self.view[self.received : self.wanted])

    def await_call(self) -> bool:
        """Wait for the whole call, RECEIVE_TIMEOUT_S at most; False if it has not arrived, or is of another length."""
        # One blocking read for all bytes: a small call arrives in one segment, and the poll before it is saved. What
        # arrives in parts is completed by `advance`.
        self.received = self.channel.await_bytes(self.view[: self.wanted])
        return self.received == self.wanted

    def agrees(self, header: bytes) -> bool:
        """Whether the worker's signature is the same as ours; True as long as it has not arrived completely."""
        if self.received < HEADER_BYTES:
            return True
        # The signature before the length: ranks that make different calls usually differ in length too, and the
        # mismatch of calls is the better message.
        if self.view[SIGNATURE_AT:HEADER_BYTES] != header[SIGNATURE_AT:]:
            return False
        if self.view[: len(self._prefix)] != self._prefix:
            raise ProtocolError(f"{self.channel.peer} sent a call whose payload has an unexpected length")
        return True

    @property
    def payload(self) -> memoryview:
        """The small payload behind the header."""
        return self.view[HEADER_BYTES : self.wanted]


def _aligned(payload_bytes: int) -> memoryview:
    """Memory for a header, and a payload that starts at an aligned address."""
    memory = np.zeros(2 * ALIGNMENT + HEADER_BYTES + payload_bytes, np.uint8)
    start = -(memory.ctypes.data + HEADER_BYTES) % ALIGNMENT
    return view_of(memory)[start : start + HEADER_BYTES + payload_bytes]
