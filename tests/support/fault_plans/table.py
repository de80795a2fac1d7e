"""The fault table: all plans, and how they are run."""

import time
from collections.abc import Iterator, Mapping

from cobre.comm.testing.case import Depth
from cobre.comm.testing.harness import CellSetting
from cobre.comm.testing.leaks import LeakCheck
from cobre.comm.testing.report import Cell, Outcome, Result
from fault_plans import plans, shm_plans
from fault_plans.plan import FaultPlan, NotPermittedError, PlanError, Ranks, registered

LIMIT_S = 60.0
NO_FENCE = ("faults/*operation=fence*",)  # a fence waits for ranks of the same host only
EXCLUDED = {
    ("shm", "narrow"): ("faults/shm_no_space_for_world",),  # its window fits into any /dev/shm
    **{("tcp", variant): NO_FENCE for variant in ("pairs", "star", "ring", "ring-pairs")},
}
"""Patterns of plans that do not apply, by backend and variant."""
MODULES = (plans, shm_plans)
"""Where the plans are; importing them registers them."""


def all_plans() -> Mapping[str, FaultPlan]:
    """Return every plan by its id."""
    return registered()


def run_plans(setting: CellSetting, depth: Depth, pattern: str = "*") -> Iterator[Result]:
    """Run every plan for this setting that matches the pattern."""
    for cell in plan_grid(setting, depth):
        if cell.matches(pattern) or cell.matches(f"faults/{pattern}"):
            yield run_plan(setting, cell)


def plan_grid(setting: CellSetting, depth: Depth) -> list[Cell]:
    """Return all cells of the fault table in a setting."""
    cells = [
        setting.cell(plan.id, params)
        for plan in all_plans().values()
        if plan.backend in ("", setting.profile.name)
        for params in plan.grid(setting.size, depth)
    ]
    excluded = EXCLUDED.get((setting.profile.name, setting.variant.name), ())
    return [cell for cell in cells if not any(map(cell.matches, excluded))]


def run_plan(setting: CellSetting, cell: Cell) -> Result:
    """Run one plan, then check for leaks."""
    plan = all_plans()[cell.case]
    check = LeakCheck()
    begin = time.monotonic()
    try:
        with Ranks(setting, check.environment, LIMIT_S) as ranks:
            problems = list(plan.run(ranks, cell.params))
    except NotPermittedError as error:
        return Result(cell, Outcome.SKIPPED, str(error))
    except PlanError as error:
        return Result(cell, Outcome.ERROR, str(error), time.monotonic() - begin)
    problems += [f"left behind: {leak}" for leak in check.leaks()]
    return Result(cell, Outcome.FAIL if problems else Outcome.PASS, "\n".join(problems), time.monotonic() - begin)
