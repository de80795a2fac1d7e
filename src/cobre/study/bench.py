"""Benchmark of a case on one core, stage by stage, and an estimate of the whole study on many cores.

A few short iterations are timed: the first from a cold start, the others with bases and cuts; the last one counts.
Forward passes go through all stages; the backward pass goes through all or a sample of them, whose mean stands for the
others. Times are CPU seconds of this process, which depend little on other load of the machine.
"""

import time
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from cobre.comm import LocalConfig, create_communicator
from cobre.core.case import Case
from cobre.core.config import Config
from cobre.records import dataclass
from cobre.sddp.cut_pool import slots_in_memory
from cobre.sddp.iteration_records import Phase
from cobre.sddp.plugins.cut_selection import cut_selection
from cobre.sddp.training.chains import OPENINGS_PER_CHAIN, BackwardChains
from cobre.sddp.training.context import TrainingContext
from cobre.sddp.training.passes import Paths, add_cuts, first_bases, forward_step, lower_bound, plan_backward
from cobre.sddp.training.visited_states import iterations_in_memory
from cobre.solver.batches import Bases, PathOutputs, SolveStatistics, Step
from cobre.study.preparation.prepare import prepare
from cobre.study.preparation.study_solver import make_solver
from cobre.study.training.train import training_context


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of a stage in a round; `forward_s` and `backward_s` are CPU seconds of a solve, None: not measured."""

    stage: int
    rows: int
    columns: int
    openings: int
    forward_s: float
    backward_s: float | None
    backward: SolveStatistics

    @property
    def cpu_us_per_pivot(self) -> float | None:
        """CPU microseconds for each pivot of backward solves, overhead included."""
        if self.backward_s is None or not self.backward.pivots:
            return None
        return 1e6 * self.backward_s * self.backward.solves / self.backward.pivots

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre bench --json` prints."""
        names = ("stage", "rows", "columns", "openings", "forward_s", "backward_s", "cpu_us_per_pivot")
        return {name: getattr(self, name) for name in names} | {"backward": self.backward.as_dict()}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds that a study would take on some cores."""

    cores: int
    iteration_s: float
    training_s: float
    simulation_s: float

    @property
    def total_s(self) -> float:
        """Seconds of training and simulation together."""
        return self.training_s + self.simulation_s

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre bench --json` prints."""
        return {name: getattr(self, name) for name in (*self.__dataclass_fields__, "total_s")}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Measured stage costs by round, and the size of the study. bound_s: CPU seconds of a lower bound."""

    iterations: int
    forward_passes: int
    scenarios: int
    dimension: int
    paths: int
    rounds: tuple[tuple[StageCost, ...], ...]
    bound_s: float
    cpu_s: float
    bytes_per_cut: int = 0  # of one cut of every stage
    bytes_per_state: int = 0  # of one state visited at every stage; 0 if neither selection nor an export reads them
    state_window: int | None = None  # latest iterations whose states are kept; None: all
    blocks: int = 1  # parts of a trial point's openings that cores share
    bound_chain: int = OPENINGS_PER_CHAIN  # openings that one core solves for the lower bound, one after the other

    @property
    def cuts(self) -> int:
        """Cuts of each stage after the last iteration."""
        return self.iterations * self.forward_passes

    @property
    def cut_bytes(self) -> int:
        """Memory of all cuts on each node, spare capacity included."""
        return slots_in_memory(self.iterations, self.forward_passes, self.bytes_per_cut) * self.bytes_per_cut

    @property
    def state_bytes(self) -> int:
        """Memory of the visited states on each node, spare capacity included."""
        iteration_bytes = self.forward_passes * self.bytes_per_state
        return iterations_in_memory(self.iterations, iteration_bytes, self.state_window) * iteration_bytes

    @property
    def stages(self) -> tuple[StageCost, ...]:
        """Stage costs of the last round, which has the most cuts."""
        return self.rounds[-1]

    @property
    def sampled(self) -> list[StageCost]:
        """The stages in which backward solves were timed."""
        return [cost for cost in self.stages if cost.backward_s is not None]

    @property
    def forward_path_s(self) -> float:
        """CPU seconds of a path from the first stage to the last."""
        return sum(cost.forward_s for cost in self.stages)

    @property
    def backward_path_s(self) -> float:
        """CPU seconds of all openings of all stages but the first, at the trial points of one path."""
        seconds = [cost.backward_s for cost in self.sampled if cost.backward_s is not None]
        mean = sum(seconds) / len(seconds)
        return sum(cost.openings * (mean if cost.backward_s is None else cost.backward_s) for cost in self.stages[1:])

    def estimate(self, cores: int) -> Estimate:
        """Estimate wall times by the core with the most paths, or blocks of openings; without exchanges and waiting."""
        chains = -(-self.stages[0].openings // self.bound_chain)
        bound_s = self.bound_s * -(-chains // cores) / chains
        forward_s = -(-self.forward_passes // cores) * self.forward_path_s
        backward_s = -(-self.forward_passes * self.blocks // cores) * self.backward_path_s / self.blocks
        iteration_s = forward_s + backward_s + bound_s
        simulation_s = -(-self.scenarios // cores) * self.forward_path_s
        return Estimate(cores, iteration_s, self.iterations * iteration_s, simulation_s)


def bench_case(case: Case, *, stages: int | None, paths: int, rounds: int) -> Benchmark:
    """Time a case on one thread, at the trial points of `paths` paths.

    stages: number of stages whose backward solves are timed; None: all. rounds: short iterations; cuts grow with them.
    """
    began = time.process_time()
    study = prepare(case)
    with create_communicator(LocalConfig()) as comm:
        # Blocks of the whole study, however few paths are timed
        blocks = BackwardChains(study.problem, case.config.training.forward_passes)
        context = replace(training_context(comm, study, make_solver(study, 1), paths), backward_chains=blocks)
        sample = sampled_stages(study.problem.num_stages, stages)
        costs, bound_s = [], 0.0
        for number in range(1, rounds + 1):
            costs.append(_Round(context, number, sample).run())
            bound_began = time.process_time()
            lower_bound(context, number)  # in a large first stage it starts from the bases of the last round
            bound_s = time.process_time() - bound_began
        widths = [len(context.pool.components(stage)) for stage in range(context.pool.num_stages)]
        context.pool.close()
    config = case.config
    return Benchmark(
        iterations=(config.training.iteration_limit or 0) if config.training.enabled else 0,
        forward_passes=config.training.forward_passes,
        scenarios=config.simulation.num_scenarios if config.simulation.enabled else 0,
        dimension=study.problem.dimension,
        paths=paths,
        rounds=tuple(costs),
        bound_s=bound_s,
        cpu_s=time.process_time() - began,
        bytes_per_cut=8 * sum(1 + width for width in widths),
        bytes_per_state=_state_bytes(config, widths, study.problem.dimension),
        state_window=None if config.exports.states else config.training.cut_selection.window,
        blocks=min(blocks.blocks(stage) for stage in range(study.problem.num_stages)),
        bound_chain=OPENINGS_PER_CHAIN if context.state.first_stage_bases is None else 1,
    )


def _state_bytes(config: Config, widths: Sequence[int], dimension: int) -> int:
    """Return the bytes of one state visited at every stage. widths: by stage, the number of entries that cuts use."""
    if config.exports.states:
        return 8 * len(widths) * dimension
    selection = cut_selection(config.training.cut_selection)
    # The cuts of a stage are compared at the states in which the next one begins.
    return 8 * sum(widths[:-1]) if selection is not None and selection.reads_states else 0


def sampled_stages(count: int, limit: int | None) -> list[int]:
    """Return at most `limit` stages after the first, evenly spread, the last one included."""
    stages = np.linspace(count - 1, 1, min(limit or count, count - 1))
    return sorted({round(stage) for stage in stages})


@dataclass
class _Round:
    """An iteration timed after every stage, with a backward pass over a sample of stages only."""

    context: TrainingContext
    number: int
    sample: Sequence[int]
    states: list[Any] = field(default_factory=list)
    bases: list[Bases] = field(default_factory=list)
    positions: list[Any] = field(default_factory=list)

    def run(self) -> tuple[StageCost, ...]:
        """Run the short iteration; return the cost of every stage."""
        context = self.context
        forward = [self._forward(stage) for stage in range(context.problem.num_stages)]
        slots = context.pool.reserve_slots(self.number, context.split.total)
        unused_costs = np.zeros((len(forward), context.split.total))
        paths = Paths(np.stack(self.states[:-1]), self.bases, self.positions, unused_costs, unused_costs)
        # A sampled stage is solved with the cuts that its successor has made.
        solved = sorted({near for stage in self.sample for near in (stage, stage + 1)} - {len(forward)}, reverse=True)
        backward = {stage: self._backward(stage, slots, paths) for stage in solved}
        context.state.bases = first_bases(paths)
        sampled = {stage: backward[stage] for stage in self.sample}
        return tuple(self._cost(stage, seconds, sampled.get(stage)) for stage, seconds in enumerate(forward))

    def _forward(self, stage: int) -> float:
        """Return CPU seconds of one solve of the forward pass at a stage."""
        context, began = self.context, time.process_time()
        problem = context.problem
        if not self.states:
            self.states.append(np.tile(problem.initial_state, (context.split.total, 1)))
        state, step = self.states[-1], forward_step(context, self.number, stage)
        inputs = (step.cuts, step.realisations, step.realisation_index, step.bases)
        step = Step(stage, *inputs, basis_index=step.basis_index)  # without a carried basis
        batch = context.solve_paths(Phase.FORWARD, self.number, [step], state, PathOutputs(basis=True))
        self.bases.append(Bases(batch.basis_status[0], batch.basis_cuts[0]))
        chains = context.backward_chains
        self.positions.append(chains.positions(stage, step.realisations, step.realisation_index))
        self.states.append(batch.leaving)
        return (time.process_time() - began) / len(state)

    def _backward(self, stage: int, slots: range, paths: Paths) -> tuple[float, SolveStatistics]:
        """Return CPU seconds of a backward solve, and the statistics of the solver."""
        context, began = self.context, time.process_time()
        context.meter.restart()
        for plan in plan_backward(context, paths, slots, [stage]):
            add_cuts(context, self.number, plan, paths)
        done = context.meter.solves.total
        return (time.process_time() - began) / done.solves, done

    def _cost(self, stage: int, forward_s: float, backward: tuple[float, SolveStatistics] | None) -> StageCost:
        lp = self.context.problem.stages[stage].program
        seconds, statistics = backward if backward is not None else (None, SolveStatistics())
        openings = self.context.problem.openings[stage].count
        return StageCost(stage, len(lp.row_lower), len(lp.cost), openings, forward_s, seconds, statistics)
