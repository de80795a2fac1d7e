"""SDDP from scratch on two reservoirs, with the bits of `cobre run`.

    python examples/from_scratch/sddp.py examples/two_reservoirs --iterations 10

docs/explanation/sddp-from-scratch.md explains it part by part. The solver comes from `cobre.solver`, the random numbers
from `cobre.stochastic`, the LP of a stage from the module beside this one; the method is here.
"""

import argparse

import numpy as np
from stage_lp import UNIT, StageLp, read, total

import cobre
from cobre.solver.batches import Bases, Chains, CutRows, Outputs, Realisations, no_bases
from cobre.solver.simplex import SimplexSolver
from cobre.stochastic.model import build_noise_model

CUTS_PER_BLOCK = 16  # the solver reads cuts in blocks of this size
OPENINGS_PER_CHAIN = 5  # openings per chain of the lower bound


class Sddp:
    """Value functions of all stages as cuts, and the passes that add to them. Costs are in millions of $."""

    def __init__(self, folder):
        noise = build_noise_model(cobre.load_case(folder))
        system = read(folder)
        stages = system["stages"]
        self.passes, self.sampler = system["forward_passes"], noise.training_sampler
        self.state = np.array(system["initial_storage"])
        self.lps = [StageLp(system, stage) for stage in stages]
        self.solver, self.programs = SimplexSolver(), []
        for number, lp in enumerate(self.lps):
            self.programs.append(lp.program(system["load_factors"][number]))
            self.solver.load(number, self.programs[-1])
        outcomes = [noise.realise(number, openings) for number, openings in enumerate(noise.openings)]
        self.openings = [Realisations(out.inflow_m3s, out.load_mw, out.availability) for out in outcomes]
        self.order = [np.argsort(total(one.inflow_m3s.T), kind="stable") for one in self.openings]  # driest first
        self.risk = [stage.get("risk_measure", "expectation") for stage in stages]
        self.cuts = [np.zeros((0, 3)) for _ in stages]  # rows: intercept, and a slope for each reservoir
        self.bases = [no_bases(program) for program in self.programs]

    def solve(self, stage, state, openings, bases):
        """Solve a stage for a chain of openings: the first from the basis given, each other from its predecessor's."""
        count = len(self.cuts[stage])
        table = np.zeros((3, -(-count // CUTS_PER_BLOCK) * CUTS_PER_BLOCK))
        table[:, :count] = self.cuts[stage].T
        cuts = CutRows([table] if count else [], count, np.ones(count, np.uint8))
        ends, first = np.array([0, len(openings)], np.int32), np.array([0 if len(bases.status) else -1], np.int32)
        chain = Chains(state[None, :], ends, self.openings[stage], np.array(openings, np.int32), bases, first)
        return self.solver.solve(stage, cuts, chain, Outputs(basis=True, solution=True))

    def forward(self, iteration, number):
        """Follow one path; return the state before each stage, the openings drawn, the optimal bases and the cost."""
        states, drawn, bases, costs, worth = [self.state], [], [], [], 1.0
        for stage, lp in enumerate(self.lps):
            opening = self.sampler.opening_indices(iteration, range(self.passes), stage)[number]
            solved = self.solve(stage, states[-1], [opening], self.bases[stage])
            later = 0.0 if lp is self.lps[-1] else lp.discount * solved.future_cost[0]
            costs.append(worth * ((solved.objective[0] - later) * UNIT))
            worth *= lp.discount
            states.append(solved.decided[0].copy())
            drawn.append(opening)
            bases.append(Bases(solved.basis_status.copy(), solved.basis_cuts.copy()))
        return states, drawn, bases, total(costs)

    def cut(self, stage, state, drawn, bases):
        """Return the cut that a trial point before `stage` gives: an intercept and the slopes of its value."""
        order = self.order[stage].tolist()
        at = order.index(drawn)
        costs, slopes = np.empty(len(order)), np.empty((len(order), 2))
        for chain in (order[at:], order[:at][::-1]):  # from the opening drawn to the wettest, and to the driest
            if chain:
                solved = self.solve(stage, state, chain, bases)
                costs[chain] = solved.objective
                slopes[chain] = solved.dual[:, :2] * self.programs[stage].row_scale[:2]  # of both water balances
        constants = costs - total((slopes * state).T)
        return total(self.weights(stage - 1, costs)[:, None] * np.column_stack([constants, slopes]))

    def weights(self, stage, costs):
        """Return the weight of each opening: (1 - lambda) of the mean plus lambda of the worst alpha of the costs."""
        probability = 1.0 / len(costs)
        if self.risk[stage] == "expectation":
            return np.full(len(costs), probability)
        alpha, share = self.risk[stage]["cvar"]["alpha"], self.risk[stage]["cvar"]["lambda"]
        most = probability / alpha
        weight = np.empty(len(costs))
        tail = np.clip(1.0 - most * np.arange(len(costs)), 0.0, most)  # the most expensive opening first
        weight[np.argsort(-costs, kind="stable")] = (1.0 - share) * probability + share * tail
        return weight

    def lower_bound(self):
        """Return the risk-adjusted cost of the first stage in $; no policy costs less."""
        order, costs = self.order[0].tolist(), np.empty(len(self.order[0]))
        for first in range(0, len(order), OPENINGS_PER_CHAIN):
            chain = order[first : first + OPENINGS_PER_CHAIN]
            costs[chain] = self.solve(0, self.state, chain, self.bases[0]).objective
        return total(self.weights(0, costs) * costs) * UNIT

    def iterate(self, iteration):
        """Make a forward and a backward pass; return the lower bound and the mean cost of the paths, in $."""
        paths = [self.forward(iteration, number) for number in range(self.passes)]
        for stage in range(len(self.lps) - 1, 0, -1):
            new = [self.cut(stage, states[stage], drawn[stage], bases[stage]) for states, drawn, bases, _ in paths]
            self.cuts[stage - 1] = np.concatenate([self.cuts[stage - 1], new])
        self.bases = paths[0][2]
        return self.lower_bound(), total([path[3] for path in paths]) / self.passes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="SDDP from scratch on a case such as examples/two_reservoirs.")
    parser.add_argument("case")
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args()
    method = Sddp(options.case)
    for number in range(1, options.iterations + 1):
        lower, mean = method.iterate(number)
        print(f"{number:3d}  lower bound {lower:16.2f} $  mean cost of the paths {mean:16.2f} $")
