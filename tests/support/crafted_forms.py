"""Crafted cases as plain loops over all scenarios: inflows from noise, and the cost of a policy.

They use nothing of the package. Lags are means of seasons, computed day by day.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from crafted_case import CraftedCase, Period
from extensive_form import Program

SeasonOf = Callable[[date], tuple[date, date]]  # the days of the season that a day belongs to


def days(start: str, end: str) -> list[date]:
    first = date.fromisoformat(start)
    return [first + timedelta(days=n) for n in range((date.fromisoformat(end) - first).days)]


def month_of(day: date) -> tuple[date, date]:
    return day.replace(day=1), (day.replace(day=28) + timedelta(days=4)).replace(day=1)


def quarter_of(day: date) -> tuple[date, date]:
    first = 3 * ((day.month - 1) // 3) + 1
    return date(day.year, first, 1), date(day.year + first // 10, (first + 2) % 12 + 1, 1)


def week_of(day: date) -> tuple[date, date]:
    year, week, _ = day.isocalendar()
    first = date.fromisocalendar(year, min(week, 52), 1)
    return first, first + timedelta(days=7) if week < 52 else date.fromisocalendar(year + 1, 1, 1)


@dataclass(frozen=True)
class Remembered:
    """A stage's own season and the day that identifies it; resolution by stage."""

    case: CraftedCase
    season_of: Sequence[SeasonOf]  # by stage
    told_by: Sequence[date]  # by stage: a day of its season

    def own(self, stage: int) -> tuple[date, date]:
        return self.season_of[stage](self.told_by[stage])

    def lag(self, stage: int, lag: int, inflows: Sequence[float]) -> float:
        """Return the mean of a season before the stage's own, over the days known when it is first read."""
        first, end = self.own(stage)
        for _ in range(lag):
            first, end = self.season_of[stage](first - timedelta(days=1))
        reader = next(
            t
            for t in range(len(self.case.periods))
            if self.season_of[t] is self.season_of[stage] and self.own(t)[0] > first
        )
        total, count = 0.0, 0
        for value, known in self._known(inflows[:reader]):
            inside = sum(first <= day < end for day in known)
            total, count = total + value * inside, count + inside
        return total / count

    def _known(self, inflows: Sequence[float]) -> list[tuple[float, list[date]]]:
        stages = [(value, days(p.start, p.end)) for value, p in zip(inflows, self.case.periods, strict=False)]
        start = date.fromisoformat(self.case.periods[0].start)
        observed = [(row[3], [day for day in days(row[1], row[2]) if day < start]) for row in self.case.observed]
        return observed + stages

    def inflow(self, stage: int, innovation: float, inflows: Sequence[float], before: dict[int, tuple[float, float]]):
        """Return mean + effect of the lags' deviations + innovation (m3/s). `before`: statistics of lags."""
        mean, deviation = self.case.inflow[0, stage]
        total = mean + innovation
        for (_, at, lag), phi in self.case.memory.items():
            if at == stage:
                lag_mean, lag_deviation = before[lag]
                total += phi * deviation / lag_deviation * (self.lag(stage, lag, inflows) - lag_mean)
        return total


def hours(period: Period) -> float:
    return period.all_hours


def tree_optimum(case: CraftedCase, cost_scale: float = 1e6) -> float:
    """Return the cost of the best policy over a tree of nodes, in $, by one LP of all nodes."""
    program = Program()
    children: dict[int | None, list[tuple[int, float]]] = {}
    for edge in case.transitions:
        children.setdefault(edge["source_id"], []).append((edge["target_id"], edge["probability"]))
    first = [case.first_hm3] * case.plants
    root = next(node["id"] for node in case.nodes if node["stage_id"] == 0)
    return cost_scale * program.minimise(_tree_node(program, case, children, root, first, cost_scale))


def _tree_node(program, case, children, node_id, before, unit) -> int:
    """Add a node and its subtree; return the column of their cost."""
    node = next(node for node in case.nodes if node["id"] == node_id)
    stage = node["stage_id"]
    period, hours = case.periods[stage], case.periods[stage].all_hours
    value = program.column(-np.inf)
    terms, supply, storage = {value: -1.0}, {}, []
    for price, most in ((40.0, 40.0), (110.0, 60.0), (300.0, 60.0), (5000.0, np.inf)):
        column = program.column(0.0, most)
        supply[column], terms[column] = 1.0, price * hours / unit
    excess = program.column()
    supply[excess], terms[excess] = -1.0, 0.01 * hours / unit
    released = []
    for plant in range(case.plants):
        turbined, spilled, end = program.column(0.0, 120.0), program.column(), program.column(0.0, case.max_hm3)
        supply[turbined], terms[spilled] = 0.8, 0.01 * hours / unit
        inflow = next(row[3] for row in case.external if row[:3] == (stage, node["scenario_id"], plant))
        hm3 = 0.0036 * hours
        balance = {end: 1.0, turbined: hm3, spilled: hm3}
        for column in released:
            balance[column] = -hm3
        right = inflow * hm3
        if isinstance(before[plant], int):
            balance[before[plant]] = -1.0
        else:
            right += before[plant]
        program.row(balance, right, right)
        released = [turbined, spilled]
        storage.append(end)
    load = case.loads.get(stage, case.load_mw)
    if case.external_load:
        load = next(row[3] for row in case.external_load if row[:3] == (stage, node["scenario_id"], 0))
    program.row(supply, load, load)
    if node_id in children:
        days = (date.fromisoformat(period.end) - date.fromisoformat(period.start)).days
        discount = (1.0 + case.discount_rate) ** (-days / 365.25)
        found = [(_tree_node(program, case, children, child, storage, unit), p) for child, p in children[node_id]]
        terms[_tree_risk(program, found, period.risk or (1.0, 0.0))] = discount
    program.row(terms, 0.0, 0.0)
    return value


def _tree_risk(program, found, risk) -> int:
    """Add (1 - share) of the mean and `share` of the conditional value at risk of columns with probabilities."""
    alpha, share = risk
    future, quantile = program.column(-np.inf), program.column(-np.inf)
    terms = {future: 1.0, quantile: -share}
    for value, probability in found:
        above = program.column()
        program.row({above: 1.0, value: -1.0, quantile: 1.0}, 0.0, np.inf)
        terms |= {above: -share * probability / alpha, value: -(1.0 - share) * probability}
    program.row(terms, 0.0, np.inf)
    return future
