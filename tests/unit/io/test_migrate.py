"""Cases of format 0.18 as 0.19: the files written, and the changes reported."""

from pathlib import Path

import pytest
from validation_case import apply_all, put, valid_documents, valid_tables, write_case

import cobre
from cobre.io.migrate import NoteKind, migrate_to_019

ROOT = Path(__file__).resolve().parents[3]
CONFIG = "config.json"


def migrated(folder, *changes):
    documents, tables = valid_documents(), valid_tables()
    apply_all(*changes)(documents, tables)
    write_case(folder / "old", documents, tables)
    return migrate_to_019(folder / "old", folder / "new"), cobre.load_case(folder / "new")


def test_forms_change_and_results_do_not(tmp_path):
    report, case = migrated(tmp_path)
    assert case.format_version == "0.19"
    assert case.generic_constraints.constraints[0].slack_basis == "per_hour"
    table = case.production.energy_productivity
    assert table["integrated_equivalent_productivity_mw_per_m3s"].tolist() == [0.9]
    texts = [str(note) for note in report.notes]
    assert any("per_hour" in text for text in texts)
    assert not any(note.kind is NoteKind.DROPPED for note in report.notes)


@pytest.mark.parametrize(
    "selection", [{"method": "lml1"}, {"method": "domination", "domination_tolerance": 0.5}], ids=lambda s: s["method"]
)
def test_lost_methods_are_named(tmp_path, selection):
    report, case = migrated(tmp_path, put(f"{CONFIG}:training.cut_selection", {"selection": selection}))
    assert case.config.training.cut_selection.selection.method == "level1"
    dropped = [note.text for note in report.notes if note.kind is NoteKind.DROPPED]
    assert any(selection["method"] in text for text in dropped)


def test_truncation_is_named(tmp_path):
    report, case = migrated(tmp_path, put(f"{CONFIG}:modeling", {"inflow_non_negativity": {"method": "truncation"}}))
    assert case.config.modeling.inflow_non_negativity.method == "truncation"
    assert any(note.kind is NoteKind.NOW_EFFECTIVE and "truncation" in note.text for note in report.notes)


def test_example_gives_the_same_bounds(tmp_path):
    migrate_to_019(ROOT / "examples" / "two_reservoirs", tmp_path / "new")
    before = cobre.train(ROOT / "examples" / "two_reservoirs", iterations=3)
    assert cobre.train(tmp_path / "new", iterations=3).lower_bound == before.lower_bound
