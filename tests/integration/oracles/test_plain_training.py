"""Bounds of every training iteration compared with plain SDDP: one LP after the other, in textbook order.

It uses only the noise of the package. A reservoir whose inflow remembers the last one, or does not; one pass an
iteration or several.
"""

import pytest
from crafted_case import CraftedCase, Period, months, write_crafted
from extensive_form import Program

import cobre
from cobre.io.case import load_case
from cobre.stochastic.model import build_noise_model

ITERATIONS, OPENINGS, MONTHS = 8, 5, 5
UNIT = 1e6  # $
HM3_PER_M3S_HOUR = 0.0036
PRODUCTIVITY, DEVIATION, MEMORY = 0.8, 11.9, 0.43
FIRST_HM3, MAX_HM3, LAST_INFLOW = 97.3, 211.7, 102.9
SUPPLY = ((40.0, 40.0), (110.0, 60.0), (300.0, 60.0), (5000.0, float("inf")))  # $/MWh, MW; the last is deficit


def mean_inflow(stage: int) -> float:
    """Return inflows of months that become dry."""
    return 83.1 - 13.7 * stage


def reservoir(memory: float, passes: int) -> CraftedCase:
    """Return a plant whose numbers have no ties: a degenerate vertex would leave a choice of cuts."""
    return CraftedCase(
        periods=[Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", m - 1, OPENINGS) for m in range(1, MONTHS + 1)],
        seasons=months(),
        inflow={(0, stage): (mean_inflow(stage), DEVIATION) for stage in range(-1, MONTHS)},
        memory={(0, stage, 1): memory for stage in range(MONTHS)} if memory else {},
        observed=[(0, "2023-12-01", "2024-01-01", LAST_INFLOW)],
        loads={stage: 137.3 + 9.1 * stage for stage in range(MONTHS)},
        first_hm3=FIRST_HM3,
        max_hm3=MAX_HM3,
        discount_rate=0.31,
        rules=({"type": "iteration_limit", "limit": ITERATIONS},),
        selection={"method": "sampled", "forward_passes": passes},
    )


class PlainSddp:
    """Plain SDDP. States: volume (hm3) and last inflow (m3/s); a cut of a stage is a constant and two slopes."""

    def __init__(self, case: CraftedCase, memory: float, noise: list[list[float]]):
        self.case, self.memory, self.noise = case, memory, noise
        self.cuts: list[list[tuple[float, float, float]]] = [[] for _ in case.periods]

    def iterate(self, paths: list[list[float]]) -> tuple[float, float]:
        """Run forward along the paths (noise by stage) and backward from the end; return both bounds in $."""
        walked = [self.forward(path) for path in paths]
        for stage in range(MONTHS - 1, 0, -1):
            self.cuts[stage - 1] += [self.cut(stage, states[stage]) for states, _ in walked]
        lower = self.average(stage=0, state=(FIRST_HM3, LAST_INFLOW))[0]
        return UNIT * lower, UNIT * sum(cost for _, cost in walked) / len(walked)

    def forward(self, path):
        """Simulate a path; return the state before each stage, and the cost of the path."""
        states, total, weight = [(FIRST_HM3, LAST_INFLOW)], 0.0, 1.0
        for stage, innovation in enumerate(path):
            _, cost, after, _ = self.solve(stage, states[-1], innovation)
            total, weight = total + weight * cost, weight * self.discount(stage)
            states.append(after)
        return states, total

    def cut(self, stage, state):
        value, *slopes = self.average(stage, state)
        return value - sum(slope * number for slope, number in zip(slopes, state, strict=True)), *slopes

    def average(self, stage, state):
        """Return the mean value over all openings, and its two slopes."""
        solved = [self.solve(stage, state, innovation) for innovation in self.noise[stage]]
        return [sum(column) / len(solved) for column in zip(*((one[0], *one[3]) for one in solved), strict=True)]

    def discount(self, stage):
        return (1.0 + self.case.discount_rate) ** (-self.case.periods[stage].all_hours / 24.0 / 365.25)

    def solve(self, stage, state, innovation):
        """Return value with the future, cost without it, state after the stage, and slopes in the state before it."""
        hours, (volume, before) = self.case.periods[stage].all_hours, state
        hm3, program, infinity = HM3_PER_M3S_HOUR * hours, Program(), float("inf")
        inflow = mean_inflow(stage) + self.memory * (before - mean_inflow(stage - 1))
        inflow += DEVIATION * (1.0 - self.memory**2) ** 0.5 * innovation
        value, future, end = program.column(-infinity), program.column(), program.column(0.0, MAX_HM3)
        turbined, spilled, excess = program.column(0.0, 120.0), program.column(), program.column()
        program.row({end: 1.0, turbined: hm3, spilled: hm3}, volume + hm3 * inflow, volume + hm3 * inflow)
        for constant, slope, lag_slope in self.cuts[stage]:
            program.row({future: 1.0, end: -slope}, constant + lag_slope * inflow, infinity)
        supply = {turbined: PRODUCTIVITY, excess: -1.0}
        cost = dict.fromkeys((spilled, excess), 0.01 * hours / UNIT)
        for price, most in SUPPLY:
            power = program.column(0.0, most)
            supply[power], cost[power] = 1.0, price * hours / UNIT
        program.row(supply, self.case.loads[stage], self.case.loads[stage])
        program.row({value: 1.0, future: -self.discount(stage), **{at: -p for at, p in cost.items()}}, 0.0, 0.0)
        best, x, duals = program.solve(value)
        on_inflow = hm3 * duals[0] + sum(
            dual * lag_slope for dual, (_, _, lag_slope) in zip(duals[1:], self.cuts[stage], strict=False)
        )
        alone = sum(price * x[at] for at, price in cost.items())
        return best, alone, (x[end], inflow), (duals[0], self.memory * on_inflow)


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("memory", [0.0, MEMORY])
def test_bounds_match_plain_training_in_every_iteration(tmp_path, memory, passes):
    case = reservoir(memory, passes)
    model = build_noise_model(load_case(write_crafted(tmp_path, case)))
    plain = PlainSddp(case, memory, [opening[:, 0].tolist() for opening in model.openings])
    history = cobre.train(tmp_path, threads=1).history
    assert len(history) == ITERATIONS
    for record in history:
        drawn = [model.training_sampler.sample(record.iteration, range(passes), t)[:, 0] for t in range(MONTHS)]
        lower, upper = plain.iterate([[float(values[at]) for values in drawn] for at in range(passes)])
        assert record.lower_bound == pytest.approx(lower, rel=1e-9)
        assert record.upper_bound == pytest.approx(upper, rel=1e-9)
    assert history[-1].lower_bound > 1.01 * history[0].lower_bound  # otherwise the cuts would have no effect


def test_forward_passes_draw_openings_of_the_tree(tmp_path):
    """Check that each stage of a path is one of the stage's openings, and that every opening is drawn in time."""
    model = build_noise_model(load_case(write_crafted(tmp_path, reservoir(0.0, 1))))
    for stage, openings in enumerate(model.openings):
        met = {float(model.training_sampler.sample(iteration, [0], stage)[0, 0]) for iteration in range(1, 101)}
        assert met == set(openings[:, 0].tolist())
