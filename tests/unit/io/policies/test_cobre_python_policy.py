"""Policies that cobre-python 0.18 wrote. The files next to this module were written by it, with numbers chosen here."""

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cobre.io.policies.cobre_python_policy import read_cobre_python_policy
from cobre.io.policies.policy_file import PolicyFileError, find_policy_file, parse_policy, read_policy_bytes
from cobre.policy.store import load_policy

FOLDER = Path(__file__).with_name("cobre_python_policy")
MANIFEST = FOLDER / "manifest.bin"
FILES = ("manifest.bin", "cuts/000.bin", "cuts/001.bin")
SCALE = 406.5


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "policy")


def test_all_policy_numbers_are_read():
    found = read_cobre_python_policy(MANIFEST)
    metadata = found.metadata
    assert metadata.state_names == ("storage:301", "inflow_lag1:301")
    assert metadata.stage_ids == (602, 605)
    assert metadata.stage_end_dates == ("2031-02-01", "2031-03-01")
    assert metadata.stage_start_dates == ("2031-01-01", "2031-02-01")
    assert metadata.entity_ids == {"hydros": (301,)}
    assert (metadata.iterations, metadata.seeds, metadata.cost_scale) == (501, {"tree_seed": 509}, SCALE)
    assert metadata.facts == {"lower_bound": 502.5, "upper_bound": 503.5}


def test_cuts_follow_slot_order():
    first, last = read_cobre_python_policy(MANIFEST).stages
    assert np.allclose(first.intercepts * SCALE, [-5.0, 105.5], rtol=1e-15)
    assert np.allclose(first.coefficients * SCALE, [[106.25, 107.25]] * 2, rtol=1e-15)
    assert first.iteration.tolist() == [0, 103]
    assert first.forward_pass.tolist() == [0, 104]
    assert first.is_active.tolist() == [0, 1]
    assert last.coefficients.shape == (0, 2)


def test_find_policy_file_finds_a_cobre_python_policy(copy, tmp_path):
    assert find_policy_file(copy) == find_policy_file(tmp_path) == copy / "manifest.bin"
    policy = load_policy(tmp_path)
    assert (policy.iterations, policy.final_lower_bound, policy.final_upper_bound) == (501, 502.5, 503.5)
    assert policy.cost_to_go(0, [1.0, 2.0]) == pytest.approx(105.5 + 106.25 + 2 * 107.25)


def test_cobre_python_policy_is_converted_to_our_format(copy):
    content = read_policy_bytes(copy / "manifest.bin")
    assert parse_policy(copy, content).metadata == read_cobre_python_policy(MANIFEST).metadata


def test_our_policy_file_takes_precedence(copy, tmp_path):
    (copy / "policy.bin").write_bytes(read_policy_bytes(copy / "manifest.bin"))
    assert find_policy_file(tmp_path) == copy / "policy.bin"


def changed(path, position, form, value):
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, position, value)
    path.write_bytes(content)


def set_version(copy, version):
    content = (copy / "manifest.bin").read_bytes()
    root = struct.unpack_from("<I", content)[0]
    vtable = root - struct.unpack_from("<i", content, root)[0]
    place = root + struct.unpack_from("<H", content, vtable + 4)[0]
    changed(copy / "manifest.bin", place, "<I", version)


def test_error_names_unsupported_version(copy):
    set_version(copy, 5)
    with pytest.raises(PolicyFileError, match=r"format version 5; versions 3 \(cobre-python\) and 4 \(novomodelo\)"):
        load_policy(copy)


def test_in_format_4_cuts_are_in_units_of_the_scale_of_their_file(copy):
    set_version(copy, 4)
    first, _ = read_cobre_python_policy(copy / "manifest.bin").stages
    assert np.allclose(first.intercepts, [-5.0, 105.5], rtol=1e-15), "as stored: manifest and file have the same scale"
    assert load_policy(copy).cost_to_go(0, [1.0, 2.0]) == pytest.approx((105.5 + 106.25 + 2 * 107.25) * SCALE)


def test_non_chain_graph_raises(copy):
    content = (copy / "manifest.bin").read_bytes()
    probability = content.index(struct.pack("<d", 1.0))
    changed(copy / "manifest.bin", probability, "<d", 0.5)
    with pytest.raises(PolicyFileError, match="chain of stages"):
        load_policy(copy)


def test_file_without_identifier_raises(copy):
    (copy / "manifest.bin").write_bytes(b"{}")
    with pytest.raises(PolicyFileError, match=r"manifest\.bin.*identifier CBVF"):
        load_policy(copy)


def test_missing_stage_raises(copy):
    (copy / "cuts" / "001.bin").unlink()
    with pytest.raises(PolicyFileError, match=r"001\.bin.*No such file"):
        load_policy(copy)


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_raises(copy, name):
    path = copy / name
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        try:
            load_policy(copy)  # what follows the last number that is read does not matter
        except PolicyFileError as error:
            assert str(copy) in str(error)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), share=st.floats(0.0, 0.999), value=st.integers(0, 255))
def test_corrupted_bytes_raise_policy_file_error_only(tmp_path, name, share, value):
    copy = shutil.copytree(FOLDER, tmp_path / "policy", dirs_exist_ok=True)
    path = copy / name
    changed(path, int(share * path.stat().st_size), "B", value)
    try:
        load_policy(copy)
    except PolicyFileError as error:
        assert str(copy) in str(error)
