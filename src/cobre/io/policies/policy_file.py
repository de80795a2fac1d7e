"""Policy files, which round-trip byte for byte.

    header     magic "COBREPOL", format version, number of stages, bytes of the file, bytes of the metadata
    metadata   JSON with sorted keys, UTF-8
    stage      number of cuts, dimension, then intercepts, coefficients (cut after cut), iterations,
               forward passes, active flags
    ...
    trailer    SHA-256 of everything before it

All numbers are little-endian: float64, int32, uint8, and uint32 or uint64 for counts. The file has no other
content, and nothing in it is ever executed.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.file_names import POLICY, POLICY_FILE
from cobre.errors import ValidationError
from cobre.io.storage.atomic import replacing_file
from cobre.io.storage.confined import MAX_BYTES, read_untrusted
from cobre.io.storage.stored_json import parse_stored
from cobre.records import dataclass

MAGIC = b"COBREPOL"
VERSION = 1
STAGE_HOURS = "stage_hours"  # fact of a policy with water in transit: block hours by stage
POLICY_MANIFEST = "manifest.bin"  # of a policy of cobre-python
_HEADER = struct.Struct("<8sIIQQ")
_STAGE = struct.Struct("<QI")
_DIGEST_BYTES = hashlib.sha256().digest_size
_FLOAT, _INT, _FLAG = np.dtype("<f8"), np.dtype("<i4"), np.dtype("u1")


class PolicyFileError(ValidationError):
    """A file without a policy that this program can read; the message says why and what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class StageCuts:
    """The cuts of one stage: cost-to-go >= intercept + coefficients . state, in scaled units of cost."""

    intercepts: NDArray[np.float64]
    coefficients: NDArray[np.float64]  # cuts x dimension
    iteration: NDArray[np.int32]
    forward_pass: NDArray[np.int32]
    is_active: NDArray[np.uint8]

    def __post_init__(self) -> None:
        count = len(self.intercepts)
        if self.coefficients.ndim != 2 or self.coefficients.shape[0] != count:
            raise ValueError(f"coefficients have the shape {self.coefficients.shape}, for {count} intercepts")
        for name in ("iteration", "forward_pass", "is_active"):
            if getattr(self, name).shape != (count,):
                raise ValueError(f"{name} has the shape {getattr(self, name).shape}, for {count} intercepts")

    @property
    def streamed(self) -> "StreamedStage":
        """The cuts as a `StreamedStage`."""
        facts = (self.iteration, self.forward_pass, self.is_active)
        return StreamedStage(self.coefficients.shape[1], self.intercepts, lambda: iter([self.coefficients]), *facts)


@dataclass(frozen=True, slots=True)
class StreamedStage:
    """The cuts of one stage, whose coefficients are produced while they are written.

    pieces: cuts x dimension, in order.
    """

    dimension: int
    intercepts: NDArray[np.float64]
    pieces: Callable[[], Iterator[NDArray[np.float64]]]
    iteration: NDArray[np.int32]
    forward_pass: NDArray[np.int32]
    is_active: NDArray[np.uint8]

    @property
    def nbytes(self) -> int:
        """Bytes that the stage's cuts take in the file."""
        numbers = (1 + self.dimension) * _FLOAT.itemsize + 2 * _INT.itemsize + _FLAG.itemsize
        return _STAGE.size + len(self.intercepts) * numbers

    def parts(self) -> Iterator[bytes | memoryview]:
        """Return the stage's bytes, in the order of the file."""
        yield _STAGE.pack(len(self.intercepts), self.dimension)
        yield np.ascontiguousarray(self.intercepts, _FLOAT).tobytes()
        for piece in self.pieces():
            yield np.ascontiguousarray(piece, _FLOAT).reshape(-1).data.cast("B")
        yield np.ascontiguousarray(self.iteration, _INT).tobytes()
        yield np.ascontiguousarray(self.forward_pass, _INT).tobytes()
        yield np.ascontiguousarray(self.is_active, _FLAG).tobytes()


@dataclass(frozen=True, slots=True)
class PolicyMetadata:
    """The study that a policy was trained for. Dates are ISO dates; `entity_ids` are by class, in canonical order."""

    state_names: tuple[str, ...]
    stage_ids: tuple[int, ...]
    stage_start_dates: tuple[str, ...]
    stage_end_dates: tuple[str, ...]
    entity_ids: Mapping[str, tuple[int, ...]]
    iterations: int
    seeds: Mapping[str, int]
    cost_scale: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    def stage_that_ends_on(self, day: date) -> int | None:
        """Return the index of the stage that ends on a day, from 0; None if there is none, or more than one."""
        stages = [stage for stage, end in enumerate(self.stage_end_dates) if end == day.isoformat()]
        return stages[0] if len(stages) == 1 else None


@dataclass(frozen=True, slots=True)
class PolicyData:
    """A policy: its metadata, and the cuts of each stage in order."""

    metadata: PolicyMetadata
    stages: tuple[StageCuts, ...]


def write_policy(path: Path, policy: PolicyData) -> str:
    """Write the policy, completely or not at all; returns its SHA-256, which is its trailer. Raises WriteError."""
    return write_stages(path, policy.metadata, [stage.streamed for stage in policy.stages])


def write_stages(path: Path, metadata: PolicyMetadata, stages: Sequence[StreamedStage]) -> str:
    """Write a policy as `write_policy` does, with coefficients that are produced stage by stage."""
    digest = hashlib.sha256()
    with replacing_file(path) as stream:
        for part in _parts(metadata, stages):
            digest.update(part)
            stream.write(part)
        stream.write(digest.digest())
    return digest.hexdigest()


def policy_bytes(policy: PolicyData) -> bytes:
    """Return the content that `write_policy` would write."""
    content = b"".join(_parts(policy.metadata, [stage.streamed for stage in policy.stages]))
    return content + hashlib.sha256(content).digest()


def _parts(metadata: PolicyMetadata, stages: Sequence[StreamedStage]) -> Iterator[bytes | memoryview]:
    """Return the bytes of the file except the trailer."""
    encoded = json.dumps(asdict(metadata), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    total = _HEADER.size + len(encoded) + sum(stage.nbytes for stage in stages) + _DIGEST_BYTES
    yield _HEADER.pack(MAGIC, VERSION, len(stages), total, len(encoded))
    yield encoded
    for stage in stages:
        yield from stage.parts()


def find_policy_file(path: Path) -> Path:
    """Return the policy file in a policy folder or an output directory; a path to a file is returned unchanged.

    The manifest of cobre-python is returned if there is no policy file of this program.
    """
    if not path.is_dir():
        return path
    candidates = [folder / name for name in (POLICY_FILE, POLICY_MANIFEST) for folder in (path / POLICY, path)]
    return next((file for file in candidates if file.exists()), path / POLICY_FILE)


def read_policy(path: Path) -> PolicyData:
    """Return the policy of a file. Raises PolicyFileError if it is not a complete policy of this version."""
    return parse_policy(path, read_policy_bytes(path))


def parse_policy(path: Path, content: bytes | memoryview) -> PolicyData:
    """Return the policy in a file's content; `path` is for messages. Raises PolicyFileError."""
    stages, metadata_bytes = _check_header(path, content)
    _check_digest(path, content)
    reader = _Reader(path, memoryview(content)[_HEADER.size : -_DIGEST_BYTES])
    metadata = _decode_metadata(path, bytes(reader.take(metadata_bytes)))
    policy = PolicyData(metadata, tuple(_read_stage(reader) for _ in range(stages)))
    reader.finish()
    return policy


def read_policy_bytes(path: Path) -> bytes:
    """Return the bytes of a policy file, unchecked, with one of cobre-python converted. Raises PolicyFileError."""
    if path.name == POLICY_MANIFEST:
        from cobre.io.policies.cobre_python_policy import read_cobre_python_policy  # noqa: PLC0415 - it imports this module

        return policy_bytes(read_cobre_python_policy(path))
    try:
        return read_untrusted(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise PolicyFileError(path, "there is no such policy: give a policy file, its folder, or a run") from error
    except OSError as error:
        raise PolicyFileError(path, f"cannot be read: {error.strerror}") from error


def _check_header(path: Path, content: bytes | memoryview) -> tuple[int, int]:
    """Check the header; returns the number of stages and the bytes of the metadata."""
    if bytes(content[: len(MAGIC)]) != MAGIC[: len(content)] or not len(content):
        raise PolicyFileError(path, "is not a policy file")
    if len(content) < _HEADER.size + _DIGEST_BYTES:
        raise PolicyFileError(path, f"is truncated: it has only {len(content)} bytes")
    _, version, stages, total, metadata_bytes = _HEADER.unpack_from(content)
    if version != VERSION:
        message = f"has format version {version}, and this program reads version {VERSION}: train the policy again"
        raise PolicyFileError(path, message)
    if len(content) < total:
        raise PolicyFileError(path, f"is truncated: it has {len(content)} of {total} bytes")
    if len(content) > total:
        raise PolicyFileError(path, f"is damaged: it has {len(content)} bytes, but its header has {total}")
    return int(stages), int(metadata_bytes)


def _check_digest(path: Path, content: bytes | memoryview) -> None:
    body = memoryview(content)[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != content[-_DIGEST_BYTES:]:
        raise PolicyFileError(path, "is damaged: its content does not match its checksum")


def _decode_metadata(path: Path, encoded: bytes) -> PolicyMetadata:
    try:
        content = parse_stored(encoded)
        lists = ("state_names", "stage_ids", "stage_start_dates", "stage_end_dates")
        values = {item.name: content[item.name] for item in fields(PolicyMetadata)}
        values |= {name: tuple(values[name]) for name in lists}
        values["entity_ids"] = {name: tuple(ids) for name, ids in values["entity_ids"].items()}
        return PolicyMetadata(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolicyFileError(path, f"has metadata that this program does not know: {error!r}") from error


def _read_stage(reader: "_Reader") -> StageCuts:
    count, dimension = _STAGE.unpack(reader.take(_STAGE.size))
    return StageCuts(
        intercepts=reader.array(_FLOAT, count),
        coefficients=reader.array(_FLOAT, count * dimension).reshape(count, dimension),
        iteration=reader.array(_INT, count),
        forward_pass=reader.array(_INT, count),
        is_active=reader.array(_FLAG, count),
    )


class _Reader:
    """Reads consecutive pieces of a buffer; raises PolicyFileError beyond its end."""

    def __init__(self, path: Path, buffer: memoryview) -> None:
        self._path = path
        self._buffer = buffer
        self._position = 0

    def take(self, count: int) -> memoryview:
        end = self._position + count
        if end > len(self._buffer):
            raise PolicyFileError(self._path, "is damaged: a stage is longer than the file")
        piece = self._buffer[self._position : end]
        self._position = end
        return piece

    def array(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        """Return a copy in native byte order, so that the bytes of the file can be freed."""
        stored = np.frombuffer(self.take(count * dtype.itemsize), dtype)
        return stored.astype(dtype.newbyteorder("="))

    def finish(self) -> None:
        left = len(self._buffer) - self._position
        if left:
            raise PolicyFileError(self._path, f"is damaged: {left} bytes follow the last stage")
