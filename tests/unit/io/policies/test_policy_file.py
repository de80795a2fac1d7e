"""Policy files: byte for byte, or a clear error."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cobre.io.policies.policy_file import (
    PolicyData,
    PolicyFileError,
    PolicyMetadata,
    StageCuts,
    read_policy,
    write_policy,
)
from cobre.io.storage.atomic import WriteError

METADATA = PolicyMetadata(
    state_names=("storage_0", "storage_1", "inflow_lag_1_0"),
    stage_ids=(0, 1, 2),
    stage_start_dates=("2024-01-01", "2024-02-01", "2024-03-01"),
    stage_end_dates=("2024-02-01", "2024-03-01", "2024-04-01"),
    entity_ids={"hydro": (3, 7)},
    iterations=12,
    seeds={"tree": 42},
    cost_scale=1e6,
    facts={"lower_bound": 0.1 + 0.2, "case": "açude"},
)


def cuts(count, dimension=3, seed=0):
    random = np.random.default_rng(seed)
    return StageCuts(
        random.normal(size=count),
        random.normal(size=(count, dimension)),
        np.arange(count, dtype=np.int32),
        np.arange(count, dtype=np.int32) % 4,
        (np.arange(count) % 3 > 0).astype(np.uint8),
    )


def policy(*counts):
    return PolicyData(METADATA, tuple(cuts(count, seed=number) for number, count in enumerate(counts)))


def assert_same(found, wanted):
    assert found.metadata == wanted.metadata
    assert len(found.stages) == len(wanted.stages)
    for ours, theirs in zip(found.stages, wanted.stages, strict=True):
        for name in ("intercepts", "coefficients", "iteration", "forward_pass", "is_active"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "policy.bin"
    write_policy(path, policy(5, 300, 0))
    return path


def test_policy_round_trips(tmp_path, written):
    found = read_policy(written)
    assert_same(found, policy(5, 300, 0))
    write_policy(tmp_path / "again.bin", found)
    assert (tmp_path / "again.bin").read_bytes() == written.read_bytes()


def test_policy_file_does_not_depend_on_the_order_of_keys(tmp_path):
    for name, seeds in (("a", {"tree": 1, "forward": 2}), ("b", {"forward": 2, "tree": 1})):
        metadata = PolicyMetadata((), (), (), (), {}, 0, seeds, 1.0)
        write_policy(tmp_path / name, PolicyData(metadata, ()))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numbers_keep_every_bit(tmp_path):
    odd = np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 5e-324])
    ones = np.ones(6, np.int32)
    stage = StageCuts(odd, np.zeros((6, 0)), ones, ones, np.ones(6, np.uint8))
    write_policy(tmp_path / "p", PolicyData(METADATA, (stage,)))
    assert read_policy(tmp_path / "p").stages[0].intercepts.tobytes() == odd.tobytes()


def test_arrays_of_any_layout_are_stored_as_the_same_bytes(tmp_path):
    plain = cuts(6)
    intercepts, coefficients = plain.intercepts.astype(">f8"), np.asfortranarray(plain.coefficients)
    other = StageCuts(intercepts, coefficients, plain.iteration, plain.forward_pass, plain.is_active)
    for name, stage in (("a", plain), ("b", other)):
        write_policy(tmp_path / name, PolicyData(METADATA, (stage,)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_digest_depends_on_content_only(written):
    content = written.read_bytes()
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]


def test_loaded_arrays_are_writable(written):
    intercepts = read_policy(written).stages[0].intercepts
    intercepts += 1.0
    assert (intercepts == read_policy(written).stages[0].intercepts + 1.0).all()


def test_missing_file_raises(tmp_path):
    with pytest.raises(PolicyFileError, match="there is no such policy: give a policy file"):
        read_policy(tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"hello, world", b"PK\x03\x04" + bytes(100)])
def test_non_policy_files_raise(tmp_path, content):
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(PolicyFileError, match="is not a policy file"):
        read_policy(tmp_path / "p")


def test_every_truncation_is_noticed(tmp_path, written):
    content = written.read_bytes()
    for length in [*range(1, 80), len(content) // 2, len(content) - 33, len(content) - 1]:
        (tmp_path / "p").write_bytes(content[:length])
        with pytest.raises(PolicyFileError, match="is truncated"):
            read_policy(tmp_path / "p")


def test_bytes_that_follow_are_noticed(tmp_path, written):
    (tmp_path / "p").write_bytes(written.read_bytes() + b"\0")
    with pytest.raises(PolicyFileError, match="is damaged"):
        read_policy(tmp_path / "p")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(tmp_path, written, position, bit):
    content = bytearray(written.read_bytes())
    content[position % len(content)] ^= 1 << bit
    (tmp_path / "p").write_bytes(bytes(content))
    with pytest.raises(PolicyFileError):
        read_policy(tmp_path / "p")


def test_other_format_version_is_refused(tmp_path, written):
    content = bytearray(written.read_bytes())
    content[8:12] = struct.pack("<I", 9)
    (tmp_path / "p").write_bytes(bytes(content))
    with pytest.raises(PolicyFileError, match="has format version 9, and this program reads version 1"):
        read_policy(tmp_path / "p")


def resealed(content):
    """Return the content with a matching checksum: damage that only a program could do."""
    return bytes(content[:-32]) + hashlib.sha256(content[:-32]).digest()


def test_stage_longer_than_the_file_is_refused(tmp_path, written):
    content = bytearray(written.read_bytes())
    metadata_bytes = struct.unpack_from("<Q", content, 24)[0]
    struct.pack_into("<Q", content, 32 + metadata_bytes, 1 << 60)
    (tmp_path / "p").write_bytes(resealed(content))
    with pytest.raises(PolicyFileError, match="longer than the file"):
        read_policy(tmp_path / "p")


def test_metadata_of_another_kind(tmp_path, written):
    content = bytearray(written.read_bytes())
    place = content.index(b"cost_scale")
    content[place : place + 4] = b"xxxx"
    (tmp_path / "p").write_bytes(resealed(content))
    with pytest.raises(PolicyFileError, match="metadata that this program does not know"):
        read_policy(tmp_path / "p")


def test_shapes_are_checked_before_anything_is_written():
    with pytest.raises(ValueError, match="for 2 intercepts"):
        StageCuts(np.zeros(2), np.zeros((3, 1)), np.zeros(2, np.int32), np.zeros(2, np.int32), np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="is_active has the shape"):
        StageCuts(np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.int32), np.zeros(2, np.int32), np.zeros(3, np.uint8))


def test_unwritable_folder_raises_write_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="a part of its path is a file"):
        write_policy(tmp_path / "file" / "policy.bin", policy(1))


def test_failed_write_keeps_the_old_policy(tmp_path, written):
    before = written.read_bytes()
    metadata = PolicyMetadata((), (), (), (), {}, 0, {}, 1.0, {"bound": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        write_policy(written, PolicyData(metadata, ()))
    assert written.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy.bin"]
