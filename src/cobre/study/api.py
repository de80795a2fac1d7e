"""What `import cobre` offers to scripts; one process, any number of threads."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.cores import usable_cores
from cobre.core.case import Case
from cobre.io.case import load_case_with_problems, read_case
from cobre.io.problems import Problem, Problems
from cobre.sddp.events import IterationRecord
from cobre.study.policy import Policy
from cobre.study.policy_store import load_policy
from cobre.study.prepare import make_solver, prepare
from cobre.study.results import SimulationResult, TrainingResult
from cobre.study.training import train_study

Overrides = Mapping[str, Any]


class ValidationReport:
    """What is wrong with a case; true when nothing keeps it from running."""

    def __init__(self, path: str, problems: Problems) -> None:
        self.path = path
        self.errors: tuple[Problem, ...] = tuple(problems.errors)
        self.warnings: tuple[Problem, ...] = tuple(problems.warnings)

    def __bool__(self) -> bool:
        return not self.errors

    def __str__(self) -> str:
        lines = [f"{self.path}: {len(self.errors)} error(s), {len(self.warnings)} warning(s)"]
        lines += [f"  error: {problem}" for problem in self.errors]
        lines += [f"  warning: {problem}" for problem in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__


def validate(path: str | Path, config_overrides: Overrides | None = None) -> ValidationReport:
    """Read a case and report everything that is wrong with it."""
    problems = Problems()
    read_case(path, problems, config_overrides)
    return ValidationReport(str(path), problems)


def train(
    case: Case | str | Path,
    *,
    threads: int | None = None,
    iterations: int | None = None,
    config_overrides: Overrides | None = None,
    progress_callback: Callable[[IterationRecord], None] | None = None,
) -> TrainingResult:
    """Train a policy for a case or the directory of one.

    threads: those of the LP solver (all usable cores). iterations: instead of the case's own limit. The result has the
    same bits for every number of threads.
    """
    loaded, warnings = as_case(case, with_iterations(config_overrides, iterations))
    study = prepare(loaded)
    solver = make_solver(study, threads or usable_cores())
    with LocalCommunicator() as comm:
        trained = train_study(comm, comm, study, solver, progress_callback or _silent)
        return TrainingResult(
            policy=Policy.of(study, trained.context.pool, trained.history),
            history=trained.history,
            stop_reason=trained.stop_reason,
            digest=trained.digest,
            training_seconds=trained.training_s,
            warnings=warnings,
        )


def simulate(
    case: Case | str | Path,
    policy: Policy | str | Path,
    *,
    scenarios: int | None = None,
    threads: int | None = None,
    config_overrides: Overrides | None = None,
) -> SimulationResult:
    """Simulate a policy, given or stored, in many scenarios (the case's own number)."""
    from cobre.study.simulation import simulate_policy

    loaded, warnings = as_case(case, config_overrides)
    study = prepare(loaded)
    stored = policy if isinstance(policy, Policy) else load_policy(Path(policy))
    solver = make_solver(study, threads or usable_cores())
    with LocalCommunicator() as comm:
        count = scenarios or loaded.config.simulation.num_scenarios
        return simulate_policy(comm, comm, study, solver, stored, count, warnings)


def as_case(case: Case | str | Path, overrides: Overrides | None) -> tuple[Case, tuple[str, ...]]:
    """A case that was given, or the one in a directory, with its warnings."""
    if isinstance(case, Case):
        if overrides:
            raise ValueError("config_overrides act while a case is read: give the directory, or pass them to load_case")
        return case, ()
    loaded, problems = load_case_with_problems(case, overrides)
    return loaded, tuple(str(problem) for problem in problems.warnings)


def with_iterations(overrides: Overrides | None, iterations: int | None) -> Overrides | None:
    """Overrides with another iteration limit as the only stopping rule."""
    if iterations is None:
        return overrides
    limit = {"training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}]}
    return {**(overrides or {}), **limit}


def _silent(_: IterationRecord) -> None:
    """Nobody listens."""
