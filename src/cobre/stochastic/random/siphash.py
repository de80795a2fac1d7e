"""SipHash-1-3 with both keys zero, on arrays: one hash per element.

A message is a list of 64-bit words in little-endian order. Its last word carries the bytes that are left over, and the
length in its top byte. Fields may be arrays or single numbers; they are broadcast against each other.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# The letters "somepseudorandomlygeneratedbytes", as the definition of SipHash has them.
_INITIAL_STATE = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_FINAL_MARK = np.uint64(0xFF)
_FINALIZATION_ROUNDS = 3


def rotate_left(words: Words, count: int) -> Words:
    """All bits move up by `count`; those that fall off come in again below."""
    return (words << np.uint64(count)) | (words >> np.uint64(64 - count))


def siphash13(message: Sequence[Words]) -> Words:
    """The hashes of messages that have the same number of words."""
    shape = np.broadcast_shapes(*(word.shape for word in message))
    state = [np.full(shape, constant, dtype=np.uint64) for constant in _INITIAL_STATE]
    for word in message:
        state[3] = state[3] ^ word
        state = _mix(state)
        state[0] = state[0] ^ word
    state[2] = state[2] ^ _FINAL_MARK
    for _ in range(_FINALIZATION_ROUNDS):
        state = _mix(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def siphash13_bytes(data: bytes) -> int:
    """The hash of one message of bytes."""
    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    return int(siphash13([np.array([word], dtype=np.uint64) for word in words])[0])


def _mix(state: list[Words]) -> list[Words]:
    v0, v1, v2, v3 = state
    v0 = v0 + v1
    v1 = rotate_left(v1, 13) ^ v0
    v0 = rotate_left(v0, 32)
    v2 = v2 + v3
    v3 = rotate_left(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = rotate_left(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = rotate_left(v1, 17) ^ v2
    v2 = rotate_left(v2, 32)
    return [v0, v1, v2, v3]
