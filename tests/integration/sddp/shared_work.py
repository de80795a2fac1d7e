"""Training whose shared jobs a test can watch; as a program, a rank of two that may die with a unit in its hands.

`shared_work.py RANK NAME CASE JOB`: rank 1 takes a unit of that job and is killed; rank 0 says what it is told.
"""

import os
import signal
import sys
import time
from dataclasses import replace

from cobre.comm import PeerLostError, ShmConfig, create_communicator
from cobre.io.case import load_case
from cobre.sddp.simulation.policy_simulation import PolicySimulator, SimulationOutput
from cobre.sddp.simulation.policy_simulation import simulate as simulate_scenarios
from cobre.sddp.simulation.tables import EntityIds
from cobre.sddp.team_tables import TreeNodeTables
from cobre.sddp.upper_bounds.policy_costs import evaluate_policy
from cobre.study.preparation.on_ranks import ReadyStudy
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.requests import with_iterations
from cobre.study.simulation.sinks import ArrowSink
from cobre.study.training.train import train_study

ITERATIONS = 3
SCENARIOS = 21
DEADLINE_S = 60.0


class Watched:
    """A solver that calls `before(job, counter, units)` ahead of every job that ranks do together."""

    def __init__(self, inner, before):
        self.inner, self.before = inner, before
        self.jobs = self.solves = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def solve(self, stage, cuts, chains, out):
        self.announce(out.shared, len(chains.start) - 1)
        return self.counted(self.inner.solve(stage, cuts, chains, out))

    def solve_paths(self, steps, states, out):
        self.announce(out.shared, len(states))
        return self.counted(self.inner.solve_paths(steps, states, out))

    def counted(self, work):
        self.solves += work.solves
        return work

    def announce(self, shared, units):
        if shared is not None:
            self.jobs += 1
            self.before(self.jobs, shared.counter, units)


def until(is_so):
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, "the other rank did not do its part"
        time.sleep(0.0005)


def train(comm, case, before, threads=1):
    """Train; return the digest, the shared jobs, the solves of this rank, and the solves of all iterations."""
    study = prepare(load_case(case, with_iterations(None, ITERATIONS)))
    solver = Watched(make_solver(study, threads), before)
    trained = train_study(comm, ReadyStudy(study, solver))
    return trained.digest, solver.jobs, solver.solves, sum(record.solves for record in trained.history)


def simulate(comm, case, before, threads=1):
    """Simulate; return the costs, the digest of all rows (on rank 0), the shared jobs, and the solves of this rank."""
    study = prepare(load_case(case, with_iterations(None, ITERATIONS)))
    trained = train_study(comm, ReadyStudy(study, make_solver(study, threads)))
    solver = Watched(make_solver(study, threads), before)
    sink = ArrowSink()
    simulator = PolicySimulator(study.problem, solver, trained.context.pool, study.noise.simulation_sampler)
    output = SimulationOutput(sink, EntityIds.of(study.case.system))
    outcome = simulate_scenarios(comm, simulator, SCENARIOS, output, comm)
    return outcome.costs.tobytes(), sink.digest, solver.jobs, solver.solves


def evaluate(comm, case, before, threads=1):
    """Return the costs of the paths that a stopping rule needs, the shared jobs, and the solves of this rank."""
    study = prepare(load_case(case, with_iterations(None, ITERATIONS)))
    context = train_study(comm, ReadyStudy(study, make_solver(study, threads))).context
    solver = Watched(make_solver(study, threads), before)
    costs = evaluate_policy(replace(context, solver=solver), ITERATIONS, SCENARIOS)
    return costs.tobytes(), "", solver.jobs, solver.solves


def leave_nodes_to_others():
    """From now on, let this rank request a node of a tree only when none remains."""
    claimed_units = TreeNodeTables.claimed_units

    def late(self, units):
        numbers = claimed_units(self, units)
        until(lambda: self.counter[0] >= units)
        return numbers

    TreeNodeTables.claimed_units = late


def main(rank, name, case, job):
    with create_communicator(ShmConfig(name, rank, 2)) as comm:

        def before(number, counter, _):
            if number != job:
                return
            if rank == 1:
                counter[0] += 1  # the unit is taken: rank 0 has not begun
                os.kill(os.getpid(), signal.SIGKILL)
            until(lambda: counter[0] > 0)

        try:
            train(comm, case, before)
        except PeerLostError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
