"""A whole run: load, train, simulate, write. What the command `cobre run` does."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobre.comm import Communicator, SharedMemoryProvider
from cobre.io.atomic import check_writable, write_file
from cobre.io.case import load_case_with_problems
from cobre.io.output.results import write_results
from cobre.sddp.events import IterationRecord
from cobre.study.convergence import convergence_table
from cobre.study.policy import Policy
from cobre.study.policy_store import save_policy
from cobre.study.prepare import make_solver, prepare
from cobre.study.results import SimulationResult
from cobre.study.training import TrainedStudy, train_study


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run and where to put it. `threads` are those of this process."""

    case: Path
    output: Path
    threads: int
    overrides: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RunListener:
    """Who is told what, while it happens."""

    on_warning: Callable[[str], None]
    on_iteration: Callable[[IterationRecord], None]
    on_phase: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended; `simulation` None: the case asks for none."""

    lower_bound: float
    upper_bound: float
    upper_bound_half_width: float
    gap: float
    iterations: int
    stop_reason: str
    digest: str
    training_seconds: float
    output: str
    simulated_scenarios: int | None = None
    simulated_mean_cost: float | None = None
    simulated_std_cost: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For a program that reads."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def run_study(
    comm: Communicator, memory: SharedMemoryProvider, request: RunRequest, listener: RunListener
) -> RunSummary:
    """Load, train, simulate and write; results appear whole or not at all."""
    case, problems = load_case_with_problems(request.case, request.overrides)
    for problem in problems.warnings:
        listener.on_warning(str(problem))
    check_writable(request.output)
    listener.on_phase(f"building {len(case.horizon.stages)} stages")
    study = prepare(case)
    solver = make_solver(study, request.threads)
    listener.on_phase("training")
    trained = train_study(comm, memory, study, solver, listener.on_iteration, request.output / "failures")
    policy = Policy.of(study, trained.context.pool, trained.history)
    _write_training(request.output, trained, policy)
    simulation = None
    if case.config.simulation.enabled:
        listener.on_phase(f"simulating {case.config.simulation.num_scenarios} scenarios")
        simulation = _simulate(comm, memory, trained, policy)
        write_results(request.output / "simulation", simulation.tables, {"digest": simulation.digest})
    summary = _summary(request, trained, simulation)
    write_file(request.output / "summary.json", (json.dumps(summary.as_dict(), indent=1) + "\n").encode())
    return summary


def _write_training(output: Path, trained: TrainedStudy, policy: Policy) -> None:
    save_policy(output / "policy", policy, trained.study)
    facts = {"digest": trained.digest, "stop_reason": trained.stop_reason, "solver": trained.solver.version}
    write_results(output / "training", {"convergence": convergence_table(trained.history)}, facts)


def _simulate(
    comm: Communicator, memory: SharedMemoryProvider, trained: TrainedStudy, policy: Policy
) -> SimulationResult:
    from cobre.study.simulation import simulate_policy

    count = trained.study.case.config.simulation.num_scenarios
    return simulate_policy(comm, memory, trained.study, trained.solver, policy, count, ())


def _summary(request: RunRequest, trained: TrainedStudy, simulation: SimulationResult | None) -> RunSummary:
    last = trained.history[-1]
    return RunSummary(
        lower_bound=last.lower_bound,
        upper_bound=last.upper_bound,
        upper_bound_half_width=last.half_width,
        gap=last.gap,
        iterations=len(trained.history),
        stop_reason=trained.stop_reason,
        digest=trained.digest,
        training_seconds=trained.training_s,
        output=str(request.output),
        simulated_scenarios=None if simulation is None else len(simulation.scenario_costs),
        simulated_mean_cost=None if simulation is None else simulation.mean_cost,
        simulated_std_cost=None if simulation is None else simulation.std_cost,
    )
