"""What every rank of a study does, from the case to the results; each function here runs on all ranks alike."""

from pathlib import Path

from cobre.comm import Backend
from cobre.policy.object import Policy
from cobre.runs.events import EventListener
from cobre.study.preparation.study_cache import prepare_on_ranks
from cobre.study.requests import CaseRequest, TrainingRequest
from cobre.study.results.script_results import SimulationResult, TrainingResult
from cobre.study.resume.starting_point import POLICY_OF_ANOTHER_PROBLEM, share_policy, warn_of_other_problem
from cobre.study.simulation.simulate_policy import SimulatedPolicy, simulate_policy
from cobre.study.training.stop_request import StopRequest
from cobre.study.training.train_study import TrainedStudy, train_study


def training_result(trained: TrainedStudy) -> TrainingResult:
    """What `cobre.train` returns, from a trained study; copies the cuts."""
    ready = trained.ready
    return TrainingResult(
        policy=Policy.of(trained.study, trained.context.pool, trained.history),
        history=trained.history,
        warnings=ready.warnings,
        workers=trained.workers,
        shared_bytes=ready.shared_bytes + trained.context.pool.nbytes,
        saved_bytes=ready.saved_bytes + trained.context.pool.saved_bytes,
        is_risk_averse=ready.study.case.is_risk_averse,
        **trained.end,
    )


def train_rank(
    comm: Backend,
    case: CaseRequest,
    request: TrainingRequest,
    result_on_all_ranks: bool,
    emit: EventListener,
    stop: StopRequest | None = None,
) -> TrainingResult | None:
    """Train; rank 0 gives the result, or all ranks do."""
    ready = prepare_on_ranks(comm, case, emit)
    trained = train_study(comm, ready, request, emit, stop)
    result = training_result(trained) if result_on_all_ranks or comm.rank == 0 else None
    trained.context.pool.close()
    return result


def simulate_rank(
    comm: Backend,
    case: CaseRequest,
    policy: Policy | Path,
    scenarios: int | None,
    result_on_all_ranks: bool,
    emit: EventListener,
) -> SimulationResult | None:
    """Simulate; rank 0 gives the result, or all ranks do, of which rank 0 alone has the tables."""
    ready = prepare_on_ranks(comm, case, emit)
    shared = share_policy(comm, policy)
    count = scenarios or ready.study.case.config.simulation.num_scenarios
    warnings = (*ready.warnings, *warn_of_other_problem(ready, shared, policy, emit, POLICY_OF_ANOTHER_PROBLEM))
    result = simulate_policy(comm, SimulatedPolicy(ready.study, ready.solver, shared, count), warnings)
    return result if result_on_all_ranks or comm.rank == 0 else None
