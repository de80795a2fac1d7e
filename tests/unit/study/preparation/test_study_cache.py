"""Cached preparations: found by content, checked, and never wrong."""

import gc
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cobre.comm.backends.local import LocalCommunicator
from cobre.errors import ValidationError
from cobre.io.findings import InvalidCaseError
from cobre.runs.events import no_events
from cobre.sddp.plugins.interfaces import CutSelection
from cobre.sddp.plugins.user_plugins import checked_plugins
from cobre.study.preparation import prepare
from cobre.study.preparation.fingerprint import case_digest
from cobre.study.preparation.on_ranks import prepare_on_ranks
from cobre.study.preparation.study_cache import StudyCache, cache_folder, evict_old_entries
from cobre.study.requests import CaseRequest, with_iterations
from cobre.study.training.train import train_study
from cobre.study.unchecked_config import with_config_document

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


@pytest.fixture
def case(tmp_path, monkeypatch):
    """Return a copy of an example, whose preparation is always cached."""
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COBRE_CACHE_MIN_SECS", "0")
    shutil.copytree(EXAMPLES / "two_reservoirs", tmp_path / "case", ignore=shutil.ignore_patterns("output"))
    return tmp_path / "case"


def request(case, **settings):
    return with_config_document(CaseRequest(case, with_iterations(None, 3), **settings))


def prepared(case, emit=no_events, **settings):
    with LocalCommunicator() as comm:
        return prepare_on_ranks(comm, request(case, **settings), emit)


def train_case(case):
    with LocalCommunicator() as comm:
        return train_study(comm, prepare_on_ranks(comm, request(case), no_events))


def entries():
    return sorted(cache_folder().glob("*.study")) if cache_folder().is_dir() else []


@pytest.fixture
def builds(monkeypatch):
    """Count how often a case was prepared by computing."""
    found = []
    plain = prepare.prepare
    monkeypatch.setattr(prepare, "prepare", lambda case, report: found.append(case.name) or plain(case, report))
    return found


def test_second_run_uses_cache_and_has_same_bits(case, builds):
    first, second = train_case(case), train_case(case)
    assert builds == ["case"]
    assert second.digest == first.digest
    assert second.ready.warnings == first.ready.warnings
    again = replace(second.study)  # without the digest that was kept
    assert case_digest(again) == second.ready.fingerprint.case == first.ready.fingerprint.case


@pytest.mark.parametrize("name", ["four_regions", "large"])
def test_cached_problem_equals_computed_problem(name, tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COBRE_CACHE_MIN_SECS", "0")
    first = prepared(EXAMPLES / name)
    first.save_to_cache()
    second = prepared(EXAMPLES / name)
    assert second.cache is None and first.cache is not None
    assert case_digest(replace(second.study)) == case_digest(replace(first.study))
    assert second.study.case.config == first.study.case.config
    assert second.study.case.system == first.study.case.system
    assert second.study.notes == first.study.notes


def test_changed_byte_misses_cache(case, builds):
    train_case(case)
    path = case / "system" / "thermals.json"
    content = bytearray(path.read_bytes())
    at = next(index for index, byte in enumerate(content) if chr(byte) in "12345678")
    content[at] += 1
    path.write_bytes(content)
    prepared(case)
    assert len(builds) == 2


def test_settings_and_unknown_files_are_part_of_key(case):
    keys = {StudyCache.of(request(case)).key}
    keys.add(StudyCache.of(replace(request(case), overrides={"training.tree_seed": 7})).key)
    (case / "system" / "unknown.json").write_text("{}")
    keys.add(StudyCache.of(request(case)).key)
    os.environ["COBRE_MAX_DENSE_ROWS"] = "7"
    try:
        keys.add(StudyCache.of(request(case)).key)
    finally:
        del os.environ["COBRE_MAX_DENSE_ROWS"]
    assert len(keys) == 4


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
def test_damaged_entry_is_rebuilt(case, builds, damage):
    train_case(case)
    [path] = entries()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"flipped": content, "truncated": content[:-100], "empty": b""}[damage])
    events = []
    digest = prepared(case, events.append).fingerprint.case
    assert len(builds) == 2
    assert any("will be rebuilt" in event.get("message", "") for event in events)
    assert digest == train_case(case).ready.fingerprint.case
    assert len(entries()) == 1


def test_case_changed_while_read_is_not_cached(case):
    ready = prepared(case)
    with (case / "penalties.json").open("a") as stream:
        stream.write("\n")
    ready.save_to_cache()
    assert entries() == []


def test_disabled_cache_and_fast_cases_store_nothing(case, monkeypatch):
    assert prepared(case, use_cache=False).cache is None
    monkeypatch.setenv("COBRE_CACHE_DIR", "off")
    assert prepared(case).cache is None
    monkeypatch.delenv("COBRE_CACHE_DIR")
    monkeypatch.setenv("COBRE_CACHE_MIN_SECS", "1000")
    assert prepared(case).cache is None


@pytest.mark.parametrize("wrong", ["soon", "-1", "nan"])
def test_invalid_min_secs_names_variable(case, monkeypatch, wrong):
    monkeypatch.setenv("COBRE_CACHE_MIN_SECS", wrong)
    with pytest.raises(ValidationError, match=f"COBRE_CACHE_MIN_SECS is '{wrong}': expected a number of seconds"):
        prepared(case)


def test_unwritable_cache_folder_is_ignored(case, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COBRE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert train_case(case).digest == train_case(case).digest


def test_concurrent_processes_store_one_entry(case):
    code = "import sys, cobre\nsys.stdin.readline()\nprint(cobre.train(sys.argv[1], iterations=3, threads=1).digest)\n"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    digests = {process.communicate(timeout=300)[0].strip() for process in processes}
    assert len(digests) == 1 and digests == {train_case(case).digest}
    assert len(entries()) == 1
    assert [path.name for path in cache_folder().iterdir()] == [entries()[0].name]


class KeepAll(CutSelection):
    """A cut selection of a user, which changes no number of a study."""

    def is_due(self, iteration):
        return False

    def choose(self, cuts, states, created, iteration, active):
        return active


def test_plugin_digests_are_not_cached(case):
    """A checkpoint of either could be resumed as one of the other."""
    prepared(case, plugins=checked_plugins(cut_selection=KeepAll())).save_to_cache()
    plain = prepared(case)
    assert plain.fingerprint.case == case_digest(replace(plain.study))


def test_least_recently_used_entries_are_evicted(tmp_path):
    for age, name in enumerate("abc"):
        path = tmp_path / f"{name}.study"
        path.write_bytes(bytes(100))
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / ".x.study.12.partial").write_bytes(b"")
    os.utime(tmp_path / ".x.study.12.partial", (0, 0))
    evict_old_entries(tmp_path, 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.study", "b.study"]


def test_renamed_entry_is_not_used(case, builds):
    train_case(case)
    [path] = entries()
    changed = replace(request(case), overrides={"training.tree_seed": 7})
    path.rename(StudyCache.of(changed).path)
    events = []
    with LocalCommunicator() as comm:
        found = prepare_on_ranks(comm, changed, events.append)
    assert len(builds) == 2
    assert any("belongs to another case" in event.get("message", "") for event in events)
    assert found.study.case.config.training.tree_seed == 7


@pytest.mark.parametrize("policy", [3, [1], "fresh"])
def test_malformed_policy_setting_raises_invalid_case_error(case, policy):
    with pytest.raises(InvalidCaseError, match=r"policy: .*expected an object"), LocalCommunicator() as comm:
        prepare_on_ranks(comm, replace(request(case), overrides={"policy": policy}), no_events)


def test_garbage_collection_setting_is_restored(case):
    prepared(case)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        prepared(case)
        assert gc.get_freeze_count() > 0, "objects that the caller froze"
    finally:
        gc.unfreeze()
