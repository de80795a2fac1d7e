"""Records in a file: the same values, shared parts once, nothing executed."""

import json
import zlib
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from cobre._native import CUTS_PER_BLOCK, CutRows, LpFactorisation, Realisations
from cobre.core.entities import LineCapacity
from cobre.core.stopping import StopKind
from cobre.io.storage.record_file import MAGIC, RecordFileError, read_records, write_records
from cobre.sddp.plugins.risk import CvarMix


@dataclass
class Stranger:
    """A record of another package."""

    number: int


def stored(tmp_path, value):
    write_records(tmp_path / "file", value)
    return read_records(tmp_path / "file")


def test_values_round_trip(tmp_path):
    value = {
        "plain": (None, True, 1, 2**63, -0.0, float("inf"), "ä\0", b"\0\1"),
        (1, 2): [LineCapacity(1.0, 2.0), CvarMix(0.3, 0.9), StopKind.INTERRUPTED, date(2025, 12, 1), range(2, 9, 3)],
        "sets": ({1}, frozenset({"a"})),
        "scalar": np.float64(0.1),
    }
    found = stored(tmp_path, value)
    assert found == value
    assert str(found["plain"][4]) == "-0.0" and type(found["plain"][1]) is bool and type(found["plain"][2]) is int
    assert type(found["scalar"]) is np.float64
    assert found[1, 2][1].alpha == value[1, 2][1].alpha


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.arange(10)[::2],
        np.zeros((0, 4)),
        np.array(5.0),
        np.array(["2025-12-01"], "datetime64[D]"),
        np.array([True, False]),
        np.array(["a", "bc"]),
    ],
)
def test_arrays_come_back_and_cannot_be_written(tmp_path, array):
    found = stored(tmp_path, array)
    assert found.dtype == array.dtype and found.shape == array.shape
    assert (found == array).all()
    assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.c_contiguous
    assert not found.flags.writeable


def test_native_records_come_back(tmp_path):
    noise = Realisations(np.arange(6.0).reshape(2, 3), np.ones((2, 1)), np.zeros((2, 0)))
    cuts = CutRows([np.zeros((4, CUTS_PER_BLOCK))], 3, np.ones(3, np.uint8))
    found, rows = stored(tmp_path, (noise, cuts))
    assert isinstance(found, Realisations) and isinstance(rows, CutRows)
    for name in ("inflow_m3s", "load_mw", "availability"):
        np.testing.assert_array_equal(getattr(found, name), getattr(noise, name))
    assert (rows.count, rows.rows, len(rows.chunks)) == (3, None, 1)
    assert rows.active.tolist() == [1, 1, 1]


def test_shared_objects_and_equal_arrays_are_stored_once(tmp_path):
    part = LineCapacity(1.0, 2.0)
    first, second, left, right = stored(tmp_path, [part, part, np.ones(100), np.ones(100)])
    assert first is second and np.shares_memory(left, right)
    write_records(tmp_path / "once", np.ones(10_000))
    write_records(tmp_path / "twice", [np.ones(10_000), np.ones(10_000)])
    assert (tmp_path / "twice").stat().st_size < (tmp_path / "once").stat().st_size + 1000


def test_what_cannot_be_stored_is_refused(tmp_path):
    itself = []
    itself.append(itself)
    for value in (Stranger(1), itself, np.array([None]), print, object(), LpFactorisation()):
        with pytest.raises(RecordFileError):
            write_records(tmp_path / "file", value)
    assert list(tmp_path.iterdir()) == []


def forged(path, **changes):
    """Change the header of a file and correct its checksum."""
    content = path.read_bytes()
    length = int.from_bytes(content[12:20], "little")
    header = json.loads(content[20 : 20 + length]) | changes
    text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    assert len(text) == length
    body = content[12:20] + text + content[20 + length :]
    path.write_bytes(MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)


REFUSED_KINDS = [
    ["record", "os", "path"],
    ["record", "cobre.io", "x"],
    ["native", "cobre._native", "LpEngine"],
    ["range"],
    ["unknown"],
]


@pytest.mark.parametrize("kind", REFUSED_KINDS)
def test_files_that_name_other_things_are_refused(tmp_path, kind):
    path = tmp_path / "file"
    write_records(path, LineCapacity(1.0, 2.0))
    forged(path, kinds=[kind])
    with pytest.raises(RecordFileError):
        read_records(path)


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "file"
    write_records(path, [LineCapacity(1.0, 2.0), np.ones(3)])
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(RecordFileError):
            read_records(path)
    path.write_bytes(content[:30])
    with pytest.raises(RecordFileError):
        read_records(path)
