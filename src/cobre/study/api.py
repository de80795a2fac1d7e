"""`cobre.train` and `cobre.simulate`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cobre import notebook
from cobre.comm import BackendConfig
from cobre.core.case import Case
from cobre.core.stopping import StoppingRule
from cobre.limits import MAX_COUNT
from cobre.policy.object import Policy
from cobre.runs.events import Event, EventListener, no_events
from cobre.sddp.plugins.interfaces import CutSelection, RiskMeasure
from cobre.sddp.plugins.user_plugins import checked_plugins
from cobre.study.arguments import case_and_overrides, check_policy, checked_count, training_request
from cobre.study.placement import WorldRequest, call_on_ranks, raising_worker_errors, script_placement
from cobre.study.requests import DEFAULT_CHECKPOINT_INTERVAL, CaseRequest, Overrides
from cobre.study.results import ProgressEvent, SimulationResult, TrainingResult
from cobre.study.training.stop_request import deliver_pending_sigterm, exit_if_terminated
from cobre.study.training.train import train_rank

Result = TypeVar("Result")
ProgressCallback = Callable[[ProgressEvent], None]


def train(
    case: Case | str | Path,
    *,
    num_workers: int | None = None,
    backend: str | BackendConfig = "auto",
    comm: Any = None,
    threads: int | None = None,
    iterations: int | None = None,
    config_overrides: Overrides | None = None,
    progress_callback: ProgressCallback | None = None,
    progress: bool = True,
    warm_start: Policy | str | Path | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: int = DEFAULT_CHECKPOINT_INTERVAL,
    resume: bool = False,
    time_limit_s: float | None = None,
    risk_measure: RiskMeasure | None = None,
    stopping_rules: Sequence[StoppingRule] = (),
    cut_selection: CutSelection | None = None,
    sampler: Any = None,
) -> TrainingResult:
    """Train a policy by SDDP. Bounds and cuts are the same to the last bit for all workers, backends and threads.

    case: the directory of a case, or a case in memory (`cobre.load_case`). It is checked before training starts.
    num_workers: processes that share the work; None: only this process, with its threads. In a process that mpiexec
    or `COBRE_TCP_*` variables make a rank, it is one of the ranks, and every rank gets the result.
    backend: how workers communicate: local, shm, tcp, mpi or auto. auto: that of COBRE_COMM_BACKEND; otherwise
    that of mpiexec, srun or the COBRE_TCP_* or COBRE_SHM_* variables that started this process; otherwise shm, or local
    for one process. Or a configuration (`cobre.comm.TcpConfig(...)`, `ShmConfig`, `MpiConfig`, `LocalConfig`) by which
    this process joins a world whose ranks the caller started; every rank gets the result.
    comm: a communicator of the caller's, in place of `backend` and `num_workers`: one of `cobre.comm`, or an
    `mpi4py.MPI.Intracomm`. All of its ranks make this call, and get the result. It is never closed here; an exception
    reaches its other ranks as `AbortedError` (`Communicator.give_up`).
    threads: of the LP solver in each worker; None: an equal share of the cores, or one if others started the ranks.
    iterations: their number, in place of the stopping rules of the case.
    config_overrides: settings by dotted name, such as `{"training.tree_seed": 7}`; for directories only.
    progress_callback: called with a `ProgressEvent` for every iteration of every worker; an exception that it raises
    ends the run. Without one, a notebook shows progress by itself, unless `progress` is False.
    warm_start: a policy, or the path of one, whose cuts training begins with.
    checkpoints: a folder for checkpoints, one every `checkpoint_every` iterations. resume: continue from the newest.
    risk_measure, cut_selection, sampler: custom objects that replace those of the case; stopping_rules are added to its
    rules: see `cobre.RiskMeasure`, `cobre.CutSelection`, `cobre.Sampler`, `cobre.StoppingRule`. Workers
    get copies; the result is the same for all numbers of them. The policy remembers the risk measure.
    time_limit_s: stop after the first iteration that ends after this many seconds; one that lasts five seconds longer
    is dropped, and without a complete one NoIterationError is raised.

    Ctrl-C ends the run after the iteration, with the result so far; a second Ctrl-C drops that iteration, and the
    result is that of the one before. A third one raises KeyboardInterrupt, and so does the second before the end of the
    first iteration. SIGTERM ends it likewise, and drops an iteration that lasts five seconds longer. The result is
    returned, so that it can be saved, and the process exits with code 143 (SystemExit) when it next calls `train`,
    `simulate`, `bound` or `run`. A SIGTERM handler of your own is called instead, before this function returns.

    Raises InvalidCaseError, which lists what is wrong with the case; StageFailedError for an LP without a solution;
    CheckpointError if `resume` finds no checkpoint of this problem; PolicyIncompatibleError for a `warm_start` of
    another system or risk measure; PluginError for a custom object that returns something invalid; BackendError for
    a backend that cannot be used; TypeError or ValueError for a wrong argument. They are the same with workers, with a
    `cobre.comm.launch.WorkerError` as their cause. A worker that dies, or loses contact with the others, is a
    WorkerError.

    >>> result = cobre.train("examples/two_reservoirs", iterations=3)
    >>> result.iterations, result.stop_reason
    (3, 'iteration limit of 3 reached')
    """
    exit_if_terminated()
    iterations = checked_count("iterations", iterations, MAX_COUNT)
    if not isinstance(progress, bool):
        raise TypeError(f"progress: expected True or False, got {progress!r}; `progress_callback` takes a function")
    plugins = checked_plugins(risk_measure, stopping_rules, cut_selection, sampler)
    placement = script_placement(WorldRequest(backend, num_workers, threads, comm))
    request = training_request(
        warm_start=warm_start,
        checkpoints=checkpoints,
        checkpoint_every=checkpoint_every,
        resume=resume,
        time_limit_s=time_limit_s,
    )
    checked, overrides = case_and_overrides(case, config_overrides, iterations)
    source = CaseRequest(checked, overrides, placement.threads, plugins=plugins)
    with raising_worker_errors(), _progress_listener(progress_callback, show=progress) as emit:
        result = _of_rank_0(call_on_ranks(placement, train_rank, (source, request, placement.is_joined), emit))
    deliver_pending_sigterm(result.stop_kind)
    return result


def simulate(
    case: Case | str | Path,
    policy: Policy | str | Path,
    *,
    scenarios: int | None = None,
    num_workers: int | None = None,
    backend: str | BackendConfig = "auto",
    comm: Any = None,
    threads: int | None = None,
    config_overrides: Overrides | None = None,
    risk_measure: RiskMeasure | None = None,
    sampler: Any = None,
) -> SimulationResult:
    """Simulate a policy in many scenarios; rows come in Arrow tables, one for each kind of entity.

    policy: one from `train`, or the path of a policy file, its folder or the output directory of a run. One that was
    trained on other data of the same system is simulated, with a warning.
    scenarios: their number; None: that of the case.
    num_workers, backend, comm, threads, config_overrides: as in `train`; the rows are the same for all of them. If
    others started the ranks, only rank 0 has the tables.

    risk_measure: the object with which the policy was trained; without it, a warning says that the problem differs.
    sampler: a custom object that draws the scenarios, see `cobre.Sampler`.

    Raises PolicyIncompatibleError for a policy of another system, PolicyFileError for a file that is not a policy, and
    InvalidCaseError, StageFailedError, BackendError and WorkerError as `train` does.

    >>> policy = cobre.train("examples/two_reservoirs", iterations=3).policy
    >>> result = cobre.simulate("examples/two_reservoirs", policy, scenarios=100)
    >>> result.half_width < result.mean_cost  # $, 95 % confidence
    True
    >>> {"buses", "costs", "hydros", "thermals"} <= set(result.tables)
    True
    """
    from cobre.study.simulation.rank_simulation import simulate_rank  # training does not need it

    exit_if_terminated()
    scenarios = checked_count("scenarios", scenarios, MAX_COUNT)
    check_policy("policy", policy)
    plugins = checked_plugins(risk_measure, simulation_sampler=sampler)
    placement = script_placement(WorldRequest(backend, num_workers, threads, comm))
    policy = Path(policy) if isinstance(policy, str) else policy
    checked, overrides = case_and_overrides(case, config_overrides)
    source = CaseRequest(checked, overrides, placement.threads, plugins=plugins)
    with raising_worker_errors():
        return _of_rank_0(
            call_on_ranks(placement, simulate_rank, (source, policy, scenarios, placement.is_joined), no_events)
        )


def _of_rank_0(values: Sequence[Result | None]) -> Result:
    """Return the value of rank 0. Raises RuntimeError if there is none."""
    if values[0] is None:
        raise RuntimeError("rank 0 gave no result")
    return values[0]


@contextmanager
def _progress_listener(callback: ProgressCallback | None, *, show: bool) -> Iterator[EventListener]:
    """Yield the listener for a callback; without one a notebook shows progress if `show` is set."""
    if callback is not None or not show:
        yield progress_listener(callback)
        return
    with notebook.progress() as emit:
        yield emit


def progress_listener(callback: ProgressCallback | None) -> EventListener:
    """Return a listener that calls back with a `ProgressEvent` of each worker in every iteration."""

    def emit(event: Event) -> None:
        if callback is None or event["event"] != "iteration":
            return
        bounds = ("lower_bound", "upper_bound", "half_width", "policy_cost", "policy_cost_half_width", "gap")
        shared = {name: event[name] for name in ("iteration", *bounds, "cuts", "elapsed_s")}
        for worker, (busy_s, waiting_s) in enumerate(event["load"]):
            callback(ProgressEvent(worker=worker, busy_s=busy_s, waiting_s=waiting_s, **shared))

    return emit
