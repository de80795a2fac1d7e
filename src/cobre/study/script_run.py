"""Runs with an output directory that scripts start, in this process or in workers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cobre.comm import Backend
from cobre.io.output.results import write_results
from cobre.io.storage.stored_json import read_stored_object, write_json
from cobre.policy.object import Policy
from cobre.records import dataclass
from cobre.runs.events import EventListener, EventLog, no_events
from cobre.runs.files import EVENT_FILE, SIMULATION, SUMMARY_FILE
from cobre.runs.summary import RunSummary
from cobre.sddp.plugins.user_plugins import NO_PLUGINS, Plugins
from cobre.sddp.problem.problem import PreparedStudy
from cobre.study.arguments import case_and_overrides
from cobre.study.iteration_callback import IterationCallback, iteration_replies
from cobre.study.output_directory import output_lock
from cobre.study.placement import WorldRequest, raising_worker_errors, run_in, script_placement
from cobre.study.requests import CaseRequest, RunRequest, TrainingRequest
from cobre.study.results import SimulationResult
from cobre.study.run import run_study
from cobre.study.simulation import simulate_rank
from cobre.study.stop_request import exit_if_terminated, pass_on_termination
from cobre.study.summarize import simulation_event, simulation_numbers
from cobre.study.unchecked_config import UncheckedConfig, with_config_document

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
            summary, description = run_in(placement, _run_and_wait, (request, describe), emit)[0]
        pass_on_termination(summary.stop_kind)
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

    The log and the summary of a run in the directory get the results, too.
    """
    exit_if_terminated()
    placement = script_placement(run.world)
    checked, overrides = case_and_overrides(run.case, run.overrides)
    source = CaseRequest(checked, overrides, placement.threads, plugins=run.plugins)
    with raising_worker_errors():
        return run_in(placement, _simulate_and_store, (source, policy, output), no_events)[0]


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
