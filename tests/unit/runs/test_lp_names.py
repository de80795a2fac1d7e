"""Names of columns and rows in words."""

from functools import cache
from pathlib import Path

import pytest

from cobre.io.case import load_case
from cobre.runs.explanation import Dictionary
from cobre.study.preparation.prepare import prepare

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def _names():
    study = prepare(load_case(EXAMPLES / "four_regions"))
    return study.problem.stages[0].program.names


def _one_of_each(names):
    return sorted({name.partition("[")[0]: name for name in names}.values())


def known_columns():
    return _one_of_each(_names().columns)


def known_rows():
    return _one_of_each(_names().rows)


ENTITIES = {
    "hydros": [{"id": 7, "name": "Upper"}, {"id": 9, "name": "Lower"}],
    "buses": [{"id": 0, "name": "North"}],
}
WORDS = Dictionary(ENTITIES, [0, 1, 1])


def test_entities_have_their_names():
    storage = WORDS.column("storage[1,0]")
    assert (storage.words, storage.unit, storage.entity, storage.block) == (
        "volume at the end",
        "hm3",
        "Lower (hydro 9)",
        None,
    )
    assert WORDS.column("turbined[2,1]").entity == "Lower (hydro 9)"
    assert WORDS.column("turbined[2,1]").block == 1
    assert WORDS.column("deficit[0,1,2]").block == 2
    assert WORDS.row("power_balance[0,2]").entity == "North (bus 0)"
    assert WORDS.row("plane_1[4,2]").entity == "Lower (hydro 9)"
    assert WORDS.row("generic_3_keep some water").words == "generic constraint keep some water"


def test_entities_without_names_have_numbers():
    assert Dictionary({}, ()).column("thermal[4,0]").entity == "thermal number 4"


def test_unknown_names_are_unchanged():
    assert WORDS.column("c17").words == "c17"


@pytest.mark.parametrize("name", known_columns())
def test_every_column_of_the_lp_has_a_label(name):
    assert WORDS.column(name).words != name


@pytest.mark.parametrize("name", known_rows())
def test_every_row_of_the_lp_has_a_label(name):
    assert WORDS.row(name).words != name
