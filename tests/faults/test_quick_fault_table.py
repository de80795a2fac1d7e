"""The short form of `make faults`: the quick fault table, one test per plan."""

import pytest
from fault_plans.table import all_plans, plan_grid, run_plan
from fault_table import PROGRAM

from cobre.comm.testing.case import Depth
from cobre.comm.testing.harness import CellSetting
from cobre.comm.testing.profiles import profile
from cobre.comm.testing.report import Outcome

FUTEX, CONDVAR = (variant for variant in profile("shm").variants if variant.name in ("futex", "condvar"))
HOST, PAIRS, _, RING, RING_PAIRS = profile("tcp").variants


def cells(variant, size, *patterns, backend="shm"):
    setting = CellSetting(profile(backend), variant, size)
    return [
        pytest.param(setting, cell, id=f"{variant.name}-{size}-{cell.name}")
        for cell in plan_grid(setting, Depth.QUICK)
        if any(map(cell.matches, patterns))
    ]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("setting", "cell"),
    [
        *cells(FUTEX, 1, "*"),
        *cells(FUTEX, 2, "*"),
        *cells(FUTEX, 4, "faults/kill", "faults/interrupt"),
        *cells(CONDVAR, 3, "faults/kill", "faults/stop*", "faults/raise"),
        *cells(HOST, 2, "faults/kill", "faults/stop", "faults/raise", backend="tcp"),
        *cells(PAIRS, 4, "faults/kill*", "faults/stop", "faults/operation_limit", backend="tcp"),
        *cells(RING, 3, "faults/kill", "faults/stop", "faults/raise", backend="tcp"),
        *cells(RING_PAIRS, 4, "faults/kill", backend="tcp"),
    ],
)
def test_fault_plan_has_expected_outcome(setting, cell):
    result = run_plan(setting, cell)
    if result.outcome is Outcome.SKIPPED:
        pytest.skip(result.message)
    assert result.outcome is Outcome.PASS, f"{result.message}\nreproduce: {cell.command(PROGRAM)}"


def test_every_plan_is_in_the_short_table():
    short = {cell.case for size in (1, 2) for cell in plan_grid(CellSetting(profile("shm"), FUTEX, size), Depth.QUICK)}
    assert short == {plan.id for plan in all_plans().values() if plan.backend in ("", "shm")}
