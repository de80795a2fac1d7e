"""Explanations of saved LPs: contradictions, unbounded variables, and files that hold no LP."""

import pytest

from cobre.runs.explanation import NothingToExplainError, explain_failure
from cobre.solver.conflict import UnreadableLpError, find_conflict

INFEASIBLE = """NAME
ROWS
 N  cost
 G  power_balance[0,0]
COLUMNS
    thermal[0,0]  cost  1.0  power_balance[0,0]  1.0
    thermal[1,0]  cost  1.0  power_balance[0,0]  1.0
RHS
    RHS  power_balance[0,0]  100.0
BOUNDS
 UP BND  thermal[0,0]  30.0
 UP BND  thermal[1,0]  40.0
ENDATA
"""
UNBOUNDED = """NAME
ROWS
 N  cost
 L  max_outflow[0,0]
COLUMNS
    spilled[0,0]  cost  1.0  max_outflow[0,0]  1.0
    contract[0,1]  cost  -5.0
RHS
    RHS  max_outflow[0,0]  100.0
ENDATA
"""


@pytest.fixture
def saved(tmp_path):
    def save(text):
        path = tmp_path / "lp.mps"
        path.write_text(text)
        return path

    return save


def test_minimal_conflict_and_missing_amount(saved):
    conflict = find_conflict(saved(INFEASIBLE))
    assert conflict.status == "infeasible"
    assert {(limit.name, limit.side, limit.value) for limit in conflict.limits} == {
        ("power_balance[0,0]", "at least", 100.0),
        ("thermal[0,0]", "at most", 30.0),
        ("thermal[1,0]", "at most", 40.0),
    }
    assert [(limit.name, limit.value) for limit in conflict.violations] == [("power_balance[0,0]", pytest.approx(30.0))]


def test_lp_is_explained_without_other_files(saved):
    text = str(explain_failure(saved(INFEASIBLE)))
    assert "power balance of bus number 0 in block 0: supply meets a load of 100 MW" in text
    assert "generation of thermal number 1 in block 0: at most 40 MW" in text
    assert "30 MW in the power balance of bus number 0 in block 0 (too little)" in text


def test_unbounded_column_is_named(saved):
    explanation = explain_failure(saved(UNBOUNDED))
    assert explanation.status == "unbounded"
    assert explanation.contradiction == ("power of contract number 0 in block 1",)
    assert "negative costs" in explanation.advice[0]


def test_solvable_lp_is_reported(saved):
    explanation = explain_failure(saved(INFEASIBLE.replace("100.0", "50.0")))
    assert "is solved from scratch now" in explanation.headline
    assert explanation.contradiction == ()


def test_non_lp_file_raises(saved):
    path = saved("this is not an LP\n")
    with pytest.raises(UnreadableLpError):
        find_conflict(path)
    with pytest.raises(NothingToExplainError, match="is not an LP"):
        explain_failure(path)
