"""Run every mutant through the cases that must detect it; one that passes is a failure of the kit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mutants import CONTROL, MUTANTS

from cobre.comm.testing.case import Depth, find_case
from cobre.comm.testing.harness import CellSetting, grid, run_cells, run_world
from cobre.comm.testing.report import Cell, Outcome, Result

SIZE = 4
"""Ranks for the trials: with fewer, some wrong orders are right by chance."""

Pair = tuple[str, str]
"""A mutant and a case that must reject it."""


def run_trials(setting: CellSetting, pattern: str = "*") -> Iterator[Result]:
    """Try all mutants in worlds that pass the kit; a trial passes if the case rejects the mutant."""
    pairs = [(mutant.name, case) for mutant in MUTANTS.values() for case in mutant.killed_by]
    wanted = [pair for pair in pairs if _matches(_cell_of(setting, pair), pattern)]
    caught = _caught(setting, wanted)
    for pair in wanted:
        name, case = pair
        problem = "" if pair in caught else f"{case} accepts it: {MUTANTS[name].what}"
        yield Result(_cell_of(setting, pair), Outcome.FAIL if problem else Outcome.PASS, problem)


def run_control(setting: CellSetting, pattern: str = "*") -> Iterator[Result]:
    """Run every case with a transparent wrapper; if one fails, the trials prove nothing."""
    if not _matches(_cell_of(setting, (CONTROL.name, "*")), pattern):
        return
    cells = [replace(cell, wrapper=CONTROL.wrapper) for cell in grid(setting, Depth.QUICK) if not _own_world(cell)]
    bad = [result for result in run_cells(setting, cells) if result.is_bad]
    message = "\n".join(f"{result.cell.name}: {result.message}" for result in bad)
    yield Result(_cell_of(setting, (CONTROL.name, "all")), Outcome.FAIL if bad else Outcome.PASS, message)


def _caught(setting: CellSetting, pairs: Sequence[Pair]) -> set[Pair]:
    """Run all trials, many in one world; a mutant that was caught once is not tried again."""
    cells = [cell for pair in pairs for cell in _trial(setting, pair)]
    caught: set[Pair] = set()
    for alone in (False, True):
        remaining: Sequence[Cell] = [cell for cell in cells if _own_world(cell) is alone]
        while remaining:
            results, rest = run_world(setting, remaining[:1] if alone else remaining)
            caught |= {_pair_of(result.cell) for result in results if result.is_bad}
            remaining = [cell for cell in (remaining[1:] if alone else rest) if _pair_of(cell) not in caught]
    return caught


def _trial(setting: CellSetting, pair: Pair) -> list[Cell]:
    mutant, case = pair
    wrapper = MUTANTS[mutant].wrapper
    return [setting.cell(case, params, wrapper) for params in find_case(case).grid(setting.size, Depth.QUICK)]


def _own_world(cell: Cell) -> bool:
    return find_case(cell.case).own_world


def _pair_of(cell: Cell) -> Pair:
    return cell.wrapper.partition(":")[2], cell.case


def _cell_of(setting: CellSetting, pair: Pair) -> Cell:
    return setting.cell(f"mutants/{pair[0]}", {"case": pair[1]})


def _matches(cell: Cell, pattern: str) -> bool:
    return cell.matches(pattern) or cell.matches(f"mutants/{pattern}")
