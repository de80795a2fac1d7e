"""Tests of carrying the basis of a forward path to the next stage by names."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from cobre.io.case import load_case
from cobre.sddp.problem.problem import Problem
from cobre.study.preparation.prepare import prepare

CASE = Path(__file__).resolve().parents[4] / "examples" / "large"


def with_names_of_stage_1(problem: Problem, columns: tuple[str, ...], rows: tuple[str, ...]) -> Problem:
    first, second, *rest = problem.stages
    names = replace(second.program.names, columns=columns, rows=rows)
    return replace(problem, stages=(first, replace(second, program=replace(second.program, names=names)), *rest))


def test_statuses_are_found_by_name() -> None:
    problem = prepare(load_case(CASE)).problem
    names = problem.stages[1].program.names
    assert problem.basis_source(1) is None
    columns, rows = len(names.columns), len(names.rows)
    changed = with_names_of_stage_1(problem, ("new", *names.columns[:0:-1]), (*names.rows[1:], "other"))
    source = changed.basis_source(1)
    assert source is not None
    expected = [-1, *range(columns - 1, 0, -1), *range(columns + 1, columns + rows), -1]
    assert np.array_equal(source, expected)
