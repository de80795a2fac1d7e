"""Which seed belongs to which draw.

Every draw has its own generator, whose seed is a hash of what the draw is for. So a value only depends on that, never
on which rank or thread asks for it or in which order. Messages of different lengths cannot be
confused with each other.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cobre import _native
from cobre.core.arrays import Floats, Indices

# SipHash-1-3 with both keys zero, on arrays: one hash per element.
#
# A message is a list of 64-bit words in little-endian order. Its last word carries the bytes that are left over, and
# the length in its top byte. Fields may be arrays or single numbers; they are broadcast against each other.

Words = NDArray[np.uint64]


def siphash13(message: Sequence[Words]) -> Words:
    """Return the hashes of messages that have the same number of words."""
    shape = np.broadcast_shapes(*(word.shape for word in message))
    words = np.empty((len(message), *shape), np.uint64)
    for row, word in zip(words, message, strict=True):
        row[...] = word
    hashes = np.empty(shape, np.uint64)
    _native.siphash13(words.reshape(len(message), hashes.size), hashes.reshape(-1))
    return hashes


def siphash13_bytes(data: bytes) -> int:
    """Return the hash of one message of bytes."""
    num_whole_bytes = len(data) // 8 * 8
    words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, num_whole_bytes, 8)]
    words.append(int.from_bytes(data[num_whole_bytes:], "little") | (len(data) & 0xFF) << 56)
    return int(siphash13([np.array([word], dtype=np.uint64) for word in words])[0])


Integers = ArrayLike

# Bases of the draws that choose a window of history or a column of an external library: ASCII "historic", "external".
HISTORICAL_BASE = 0x686973746F726963
EXTERNAL_BASE = 0x65787465726E616C

# Of the draws that choose a path through a tree: ASCII "treepath".
PATH_BASE = 0x7472656570617468

# Of the draws that choose openings by the weights of a risk measure: ASCII "upperbnd".
BOUND_BASE = 0x7570706572626E64

_BITS_32 = 32
_LENGTH_SHIFT = np.uint64(56)
_GROUPED_TAG = 1
_CLASS_TAG = 2


def opening_seeds(base: int, openings: Integers, stage_id: Integers) -> Words:
    """Return seeds of the vectors of an opening tree."""
    return siphash13([_word(base), _pack(openings, stage_id), _length(16)])


def forward_seeds(base: int, iteration: Integers, scenarios: Integers, stage: Integers) -> Words:
    """Return seeds of what happens to a scenario of a forward pass at one stage."""
    return siphash13([_word(base), _pack(iteration, scenarios), _field(stage) | _length(20)])


def grouped_forward_seeds(forward_seed: int, iteration: Integers, scenarios: Integers, group: Integers) -> Words:
    """Return seeds of fresh noise, one for all stages of a noise group."""
    seed, scenario = _word(forward_seed), _field(scenarios)
    first = np.uint64(_GROUPED_TAG) | (seed << np.uint64(8))
    second = (seed >> np.uint64(56)) | (_field(iteration) << np.uint64(8)) | (scenario << np.uint64(40))
    last = (scenario >> np.uint64(24)) | (_field(group) << np.uint64(8)) | _length(21)
    return siphash13([first, second, last])


def class_forward_seed(forward_seed: int, entity_class: str) -> int:
    """Return the seed of a class's fresh noise: inflows use the configured one, others one of their own."""
    if entity_class == "inflow":
        return forward_seed
    return siphash13_bytes(bytes([_CLASS_TAG]) + forward_seed.to_bytes(8, "little") + entity_class.encode("ascii"))


def stage_seeds(base: int, stage_ids: Integers) -> Words:
    """Return seeds of designs that are drawn for a stage as a whole: Latin hypercubes, Sobol and Halton points."""
    return siphash13([_word(base), _field(stage_ids) | _length(12)])


def uniform_draws(base: int, seed: int, count: int) -> Floats:
    """Draw numbers in [0, 1), one for each scenario of a simulation."""
    words = siphash13([_word(base ^ as_seed(seed)), _field(np.arange(count)) | _length(12)])
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def as_seed(value: int) -> int:
    """Return a configured seed as 64 bits; its sign is dropped."""
    return abs(value) & 0xFFFFFFFFFFFFFFFF


def _word(value: int) -> Words:
    return np.array([value & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)


def _field(values: Integers) -> Words:
    """Return 32-bit fields, each in a word of its own; negative ids wrap as two's complement."""
    wide: Indices = np.atleast_1d(np.asarray(values, dtype=np.int64))
    return (wide & 0xFFFFFFFF).astype(np.uint64)


def _pack(low: Integers, high: Integers) -> Words:
    return _field(low) | (_field(high) << np.uint64(_BITS_32))


def _length(count_bytes: int) -> Words:
    return np.array([count_bytes], dtype=np.uint64) << _LENGTH_SHIFT


def as_indices(values: Sequence[int] | Indices) -> Indices:
    """Return scenario numbers as an array."""
    return np.asarray(values, dtype=np.int64)
