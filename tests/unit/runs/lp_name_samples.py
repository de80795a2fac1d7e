"""The kinds of columns and rows that the builder of stage LPs makes, one name of each, from the examples."""

from functools import cache
from pathlib import Path

from cobre.io.case import load_case
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
