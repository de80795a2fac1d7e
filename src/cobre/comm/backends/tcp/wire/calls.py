"""The header of a CALL frame: the signature that all ranks must agree on before any data is delivered (clause 2)."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from cobre.comm.backends.tcp.wire.fields import ProtocolError
from cobre.comm.backends.tcp.wire.protocol import PREFIX, PREFIX_BYTES, Tag
from cobre.comm.types import Dtype, Operation, ReduceOp

DTYPE_TEXT_BYTES = 40
OWN = struct.Struct(">Q")  # what may differ between ranks: how many elements this one sends
# What must be equal: sequence, operation, reduction, root, total, hash of the counts, dtype as hash and as text.
SIGNATURE = struct.Struct(f">QBBIQQ8s{DTYPE_TEXT_BYTES}s")
CALL_BYTES = OWN.size + SIGNATURE.size
HEADER_BYTES = PREFIX_BYTES + CALL_BYTES
HEADER = struct.Struct(f"{PREFIX.format}{OWN.format[1:]}{SIGNATURE.format[1:]}")  # all three at once
SIGNATURE_AT = PREFIX_BYTES + OWN.size
_CALL = int(Tag.CALL)  # a plain int: looking up an enum member costs as much as packing the header


@dataclass(frozen=True, slots=True)
class CallHeader:
    """One rank's call, parsed from its header for an error message."""

    sequence: int
    operation: int
    reduction: int
    root: int
    count: int
    total: int
    counts_hash: int
    dtype: str

    @classmethod
    def parse(cls, header: bytes | bytearray | memoryview) -> Self:
        """Parse the header of a CALL frame; raises `ProtocolError` for any other frame."""
        length, tag = PREFIX.unpack_from(header)
        if tag != Tag.CALL or length < CALL_BYTES:
            raise ProtocolError(f"expected a CALL frame, got tag {tag:#04x} with {length} bytes")
        (count,) = OWN.unpack_from(header, PREFIX_BYTES)
        sequence, operation, reduction, root, total, counts, _, dtype = SIGNATURE.unpack_from(header, SIGNATURE_AT)
        name = dtype.rstrip(b"\0").decode("utf-8", "replace")
        return cls(sequence, operation, reduction, root, count, total, counts, name)

    def __str__(self) -> str:
        return f"{title_of(self.operation)}{self._details()}"

    def _details(self) -> str:
        if self.operation == Operation.ALLGATHERV:
            return f" ({self.dtype}, {self.count} of {self.total}, counts {self.counts_hash & 0xFFFF:x})"
        if self.operation == Operation.ALLREDUCE:
            return f" ({self.dtype}, {self.total}, {ReduceOp(self.reduction % len(ReduceOp)).name})"
        if self.operation == Operation.BROADCAST:
            return f" ({self.dtype}, {self.total}, root {self.root})"
        if self.operation == Operation.CREATE_SHARED_REGION:
            return f" ({self.dtype}, {self.total})"
        return ""


def title_of(operation: int) -> str:
    """The name of an operation, or its number where it is unknown: an error message must not raise in turn."""
    try:
        return Operation(operation).title
    except ValueError:
        return f"operation {operation}"


NO_DTYPE = (b"", b"")


def call_header(
    sequence: int,
    operation: int,
    *,
    inline_bytes: int = 0,
    count: int = 0,
    total: int = 0,
    dtype: tuple[bytes, bytes] = NO_DTYPE,
    counts_hash: int = 0,
    root: int = 0,
    reduction: int = 0,
) -> bytes:
    """Pack the first bytes of a CALL frame; a payload of `inline_bytes` follows in the same frame."""
    digest, name = dtype
    return HEADER.pack(
        CALL_BYTES + inline_bytes, _CALL, count, sequence, operation, reduction, root, total, counts_hash, digest, name
    )


@lru_cache(maxsize=256)
def describe_dtype(dtype: Dtype) -> tuple[bytes, bytes]:
    """A dtype's hash, which ranks compare, and its name, which error messages show."""
    # A structured dtype's layout is more than its name: offsets and padding decide what the bytes mean.
    layout = f"{dtype!r} {dtype.itemsize} {dtype.fields!r}"
    digest = hashlib.blake2b(layout.encode(), digest_size=8).digest()
    name = str(dtype).encode()
    return digest, name if len(name) <= DTYPE_TEXT_BYTES else name[: DTYPE_TEXT_BYTES - 3] + b"..."


@lru_cache(maxsize=64)
def hash_counts(counts: Sequence[int]) -> int:
    """A hash of all counts that is the same in every process, which Python's own `hash` is not."""
    packed = struct.pack(f">{len(counts)}Q", *counts)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
