"""Array files: read back unchanged, or refused with a reason."""

import hashlib
import json
import struct

import numpy as np
import pytest

from cobre.io.storage.array_file import MAGIC, VERSION, ArrayFileError, parse_arrays, write_arrays
from cobre.io.storage.atomic import WriteError

ARRAYS = {
    "numbers": np.array([[1.5, -0.0, np.nan], [np.inf, 5e-324, -1e300]]),
    "counts": np.array([1, -(2**62)], np.int64),
    "short": np.array([[[7]]], np.int32),
    "flags": np.array([0, 1, 255], np.uint8),
    "signs": np.array([-1, 0], np.int8),
    "nothing": np.zeros((3, 0)),
}
FACTS = {"name": "Itaipú", "iterations": 3, "nested": {"list": [1, None, "x"]}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.ckpt"


def read(path):
    return parse_arrays(path, path.read_bytes())


def test_arrays_read_back_bit_for_bit(path):
    write_arrays(path, FACTS, ARRAYS)
    facts, arrays = read(path)
    assert facts == FACTS
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable


def test_same_content_gives_the_same_bytes(path):
    write_arrays(path, FACTS, ARRAYS)
    first = path.read_bytes()
    write_arrays(path, FACTS, ARRAYS)
    assert path.read_bytes() == first


def test_slices_and_foreign_byte_orders_are_stored_by_value(path):
    grid = np.arange(12.0).reshape(3, 4)
    write_arrays(path, {}, {"columns": grid[:, ::2], "swapped": grid.astype(">f8"), "turned": grid.T})
    _, arrays = read(path)
    assert np.array_equal(arrays["columns"], grid[:, ::2])
    assert np.array_equal(arrays["swapped"], grid)
    assert np.array_equal(arrays["turned"], grid.T)


def test_file_without_arrays_is_valid(path):
    write_arrays(path, {}, {})
    assert read(path) == ({}, {})


@pytest.mark.parametrize("left", [0, 1, 8, 20, 60])
def test_truncated_files_are_refused(path, left):
    write_arrays(path, FACTS, ARRAYS)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ArrayFileError, match=r"a\.ckpt (is not a checkpoint|is truncated)"):
        read(path)


def test_missing_end_is_refused(path):
    write_arrays(path, FACTS, ARRAYS)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArrayFileError, match="truncated or damaged"):
        read(path)


def test_every_flipped_bit_is_noticed(path):
    write_arrays(path, {"a": 1}, {"x": np.array([1.0])})
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        with pytest.raises(ArrayFileError):
            parse_arrays(path, bytes(damaged))


def test_files_of_other_programs_are_refused(path):
    with pytest.raises(ArrayFileError, match="is not a checkpoint of this program"):
        parse_arrays(path, b"PK\x03\x04" + bytes(200))


def forged(directory, body=b"", version=VERSION, length=None):
    """Return a file with a correct checksum and invalid content."""
    text = json.dumps(directory).encode() if not isinstance(directory, bytes) else directory
    content = struct.pack("<8sIQ", MAGIC, version, len(text) if length is None else length) + text + body
    return content + hashlib.sha256(content).digest()


def entry(dtype="<f8", shape=(1,), name="x"):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def test_other_versions_are_refused(path):
    with pytest.raises(ArrayFileError, match=f"format version 99, but this program reads version {VERSION}"):
        parse_arrays(path, forged({"facts": {}, "arrays": []}, version=99))


FORGED = [
    pytest.param(forged(b"not JSON"), id="no JSON"),
    pytest.param(forged([]), id="no object"),
    pytest.param(forged({"facts": {}}), id="no arrays"),
    pytest.param(forged({"arrays": []}), id="no facts"),
    pytest.param(forged({"facts": {}, "arrays": [{"name": "x"}]}), id="no dtype"),
    pytest.param(forged({"facts": {}, "arrays": [entry("|O")]}, bytes(8)), id="objects"),
    pytest.param(forged({"facts": {}, "arrays": [entry(shape=(2,))]}, bytes(8)), id="longer than the file"),
    pytest.param(forged({"facts": {}, "arrays": [entry(shape=(-1,))]}, bytes(8)), id="negative shape"),
    pytest.param(forged({"facts": {}, "arrays": [entry(shape=(2**62, 2**62))]}, bytes(8)), id="absurd shape"),
    pytest.param(forged({"facts": {}, "arrays": [entry()]}, bytes(16)), id="more than it says"),
    pytest.param(forged({"facts": {}, "arrays": []}, length=2**60), id="absurd directory"),
]


@pytest.mark.parametrize("content", FORGED)
def test_sound_checksum_over_nonsense_is_refused(path, content):
    with pytest.raises(ArrayFileError, match="directory that this program does not know"):
        parse_arrays(path, content)


def test_unwritable_path_raises_write_error(tmp_path):
    with pytest.raises(WriteError):
        write_arrays(tmp_path / "missing" / "a.ckpt", {}, ARRAYS)
