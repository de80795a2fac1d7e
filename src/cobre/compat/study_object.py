"""`cobre.Study`: a case with the directory of its results, step by step; and the runs that it starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from cobre.comm import Backend, BackendConfig
from cobre.compat.model_report import hydro_models_summary, model_report, provenance_report, stochastic_summary
from cobre.core.case import Case
from cobre.core.file_names import EVENT_FILE, OUTPUT, SIMULATION, SUMMARY_FILE
from cobre.core.stopping import StoppingRule
from cobre.core.system_overview import System, system_of
from cobre.errors import SimulationError, SolverError, ValidationError
from cobre.io.case import check_folder, load_case
from cobre.io.output.results import write_results
from cobre.io.storage.stored_json import read_stored_object, write_json
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, load_policy
from cobre.records import dataclass
from cobre.runs.events import EventListener, EventLog, no_events
from cobre.runs.summary import RunSummary
from cobre.sddp.plugins.interfaces import CutSelection, RiskMeasure
from cobre.sddp.plugins.user_plugins import NO_PLUGINS, Plugins, checked_plugins
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.arguments import case_and_overrides
from cobre.study.output.output_lock import output_lock
from cobre.study.output.summarize import simulation_event, simulation_numbers
from cobre.study.placement import WorldRequest, call_on_ranks, raising_worker_errors, script_placement
from cobre.study.preparation.prepare import prepare
from cobre.study.requests import CaseRequest, RunRequest, TrainingRequest
from cobre.study.results import SimulationResult
from cobre.study.run import run_study
from cobre.study.simulation.rank_simulation import simulate_rank
from cobre.study.training.iteration_callback import IterationCallback, iteration_replies
from cobre.study.training.stop_request import deliver_pending_sigterm, exit_if_terminated
from cobre.study.unchecked_config import UncheckedConfig, with_config_document
from cobre.study.validation import validate_as_dict

Description = TypeVar("Description")


def _no_description(_study: PreparedStudy) -> None:
    """Return None: the default of `describe`, importable by ranks."""


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """A case, its output directory, and the requested parallelism."""

    case: Path
    output: Path
    overrides: Mapping[str, Any]
    world: WorldRequest
    overwrite: bool = False
    plugins: Plugins = NO_PLUGINS

    def start(
        self,
        more_overrides: Mapping[str, Any],
        on_iteration: IterationCallback | None,
        describe: Callable[[PreparedStudy], Description | None] = _no_description,
    ) -> tuple[RunSummary, Description | None]:
        """Carry out the run; return its summary, and what `describe` returned on rank 0. Raises what a worker raised.

        describe: a function at module level, called with the prepared study on every rank, so that the caller need not
        prepare it again.
        """
        exit_if_terminated()
        placement = script_placement(self.world)
        overrides = {**self.overrides, **more_overrides}
        source = CaseRequest(self.case, overrides, placement.threads, plugins=self.plugins)
        source = with_config_document(source)
        with raising_worker_errors(), iteration_replies(on_iteration) as (pipe, emit):
            request = RunRequest(source, self.output, TrainingRequest(reply_pipe=pipe), overwrite=self.overwrite)
            summary, description = call_on_ranks(placement, _run_and_wait, (request, describe), emit)[0]
        deliver_pending_sigterm(summary.stop_kind)
        return summary, description

    @property
    def config(self) -> UncheckedConfig:
        """The configuration, before the case is read and checked."""
        return UncheckedConfig.of(CaseRequest(self.case, self.overrides))


def _run_and_wait(
    comm: Backend,
    request: RunRequest,
    describe: Callable[[PreparedStudy], Description | None],
    emit: EventListener,
) -> tuple[RunSummary, Description | None]:
    """Run, and return on every rank once rank 0 has written the results, which scripts read next."""
    descriptions: list[Description | None] = []
    summary = run_study(comm, request, emit, lambda study: descriptions.append(describe(study)))
    comm.barrier(label="results are written")
    return summary, descriptions[0]


def simulate_and_store(run: ScriptRun, policy: Policy, output: Path) -> int:
    """Simulate a policy and write its tables; return the number of scenarios.

    The results are added to the log and the summary of a run in the directory.
    """
    exit_if_terminated()
    placement = script_placement(run.world)
    checked, overrides = case_and_overrides(run.case, run.overrides)
    source = CaseRequest(checked, overrides, placement.threads, plugins=run.plugins)
    with raising_worker_errors():
        return call_on_ranks(placement, _simulate_and_store, (source, policy, output), no_events)[0]


def _simulate_and_store(comm: Backend, source: CaseRequest, policy: Policy, output: Path, emit: EventListener) -> int:
    result = simulate_rank(comm, source, policy, None, True, emit)
    assert result is not None  # noqa: S101 - requested on all ranks
    if comm.rank == 0:
        _store(output, result)
    comm.check_failures()
    comm.barrier(label="tables are written")
    return len(result.scenario_costs)


def _store(output: Path, result: SimulationResult) -> None:
    with output_lock(output):
        write_results(output / SIMULATION, result.tables, {"digest": result.digest})
        if (output / EVENT_FILE).exists():
            _append_to_log(output, result)
        if (output / SUMMARY_FILE).exists():
            summary = output / SUMMARY_FILE
            write_json(summary, read_stored_object(summary) | simulation_numbers(result))


def _append_to_log(output: Path, result: SimulationResult) -> None:
    log = EventLog(output, append=True)
    log.emit(simulation_event(result))
    log.close()


def script_run(
    case_dir: str | Path,
    output_dir: str | Path | None,
    config_overrides: Mapping[str, Any] | None,
    world: WorldRequest,
    *,
    overwrite: bool,
) -> ScriptRun:
    """Build what `Study` and `cobre.run.run` run. Raises CaseIoError if there is no such case."""
    check_folder(case_dir)
    output = Path(case_dir) / OUTPUT if output_dir is None else Path(output_dir)
    return ScriptRun(Path(case_dir), output, dict(config_overrides or {}), world, overwrite)


class Study:
    """A case and its output directory: `train`, `simulate` and `load_policy` read and write there, step by step.

    output_dir: None: CASE/output. threads, num_workers, backend, comm, config_overrides: as in `cobre.train`.
    risk_measure, stopping_rules, cut_selection, sampler: objects of your own, as in `cobre.train`. simulation_sampler:
    one that draws simulated scenarios, as in `cobre.simulate`.
    overwrite: an earlier run in the output directory may be replaced.

    Raises CaseIoError if there is no such case, and ValidationError for an invalid one.

    >>> study = cobre.Study("examples/two_reservoirs", "results")
    >>> policy = study.train()
    >>> study.simulate(policy)
    {'n_scenarios': 200, 'completed': 200}
    """

    def __init__(
        self,
        case_dir: str | Path,
        output_dir: str | Path | None = None,
        threads: int | None = None,
        config_overrides: Mapping[str, Any] | None = None,
        *,
        num_workers: int | None = None,
        backend: str | BackendConfig = "auto",
        comm: Any = None,
        overwrite: bool = False,
        risk_measure: RiskMeasure | None = None,
        stopping_rules: Sequence[StoppingRule] = (),
        cut_selection: CutSelection | None = None,
        sampler: Any = None,
        simulation_sampler: Any = None,
    ) -> None:
        world = WorldRequest(backend, num_workers, threads, comm)
        plugins = checked_plugins(risk_measure, stopping_rules, cut_selection, sampler, simulation_sampler)
        run = script_run(case_dir, output_dir, config_overrides, world, overwrite=overwrite)
        self._run = replace(run, plugins=plugins)
        self._case = load_case(case_dir, config_overrides)

    def __repr__(self) -> str:
        return f"<Study of {self._run.case}, results in {self._run.output}>"

    @property
    def output_dir(self) -> str:
        """The directory that results are written to."""
        return str(self._run.output)

    @property
    def case(self) -> Case:
        """The whole case, as `cobre.load_case` gives it."""
        return self._case

    @property
    def system(self) -> System:
        """Counts and entities of the case, in the shapes of cobre-python."""
        return system_of(self._case)

    @property
    def stochastic(self) -> dict[str, Any]:
        """Sources and dimensions of the noise model."""
        return stochastic_summary(self._prepared)

    @property
    def hydro_models(self) -> dict[str, Any]:
        """Numbers of plants by production model, evaporation and the like."""
        return hydro_models_summary(self._prepared)

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the parts of the noise and hydro models come from: given in files, estimated, or computed."""
        return provenance_report(self._prepared)

    @property
    def facts(self) -> dict[str, Any]:
        """`stochastic`, `hydro_models` and `provenance`, as the result of `cobre.run.run` has them."""
        return model_report(self._prepared)

    @cached_property
    def _prepared(self) -> PreparedStudy:
        return prepare(self._case)

    def validate(self) -> dict[str, Any]:
        """Return `valid`, `errors` and `warnings`, as `cobre.io.validate` does; files with errors make no study."""
        return validate_as_dict(self._run.case, self._run.overrides)

    def train(self, on_iteration: IterationCallback | None = None) -> Policy:
        """Train, and write the policy and the bounds to the output directory.

        on_iteration: called with a dictionary after each iteration; a true value ends training with the next one.
        """
        if not self._case.config.training.enabled:
            raise ValidationError("training.enabled is false in the configuration of this study: nothing to train")
        self._run.start({"simulation.enabled": False}, on_iteration)
        return self.load_policy()

    def run(self, on_iteration: IterationCallback | None = None) -> RunSummary:
        """Train and simulate as the configuration says; `train` and `simulate` do it in two steps."""
        return self._run.start({}, on_iteration)[0]

    def load_policy(self, output_dir: str | Path | None = None) -> Policy:
        """Load the policy that a run left in an output directory.

        Raises PolicyIncompatibleError for another study's.
        """
        folder = Path(output_dir or self._run.output) / self._case.config.policy.path
        policy = load_policy(folder)
        check_fit(policy, self._prepared)
        return policy

    def simulate(self, policy: Policy, output_dir: str | Path | None = None) -> dict[str, Any]:
        """Simulate as many scenarios as the case says, write the tables, and give `n_scenarios` and `completed`."""
        if not isinstance(policy, Policy):
            raise TypeError(f"expected a policy, as returned by train() or load_policy(), not {type(policy).__name__}")
        if not self._case.config.simulation.enabled:
            return {"n_scenarios": 0, "completed": 0}
        check_fit(policy, self._prepared)
        try:
            count = simulate_and_store(self._run, policy, Path(output_dir or self._run.output))
        except SolverError as error:
            raise SimulationError(str(error)) from error
        return {"n_scenarios": count, "completed": count}
