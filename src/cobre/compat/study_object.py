"""`cobre.Study`: a case with the directory of its results, step by step."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from cobre.comm import BackendConfig
from cobre.compat.study_summaries import hydro_models_summary, provenance_report, stochastic_summary, study_facts
from cobre.core.case import Case
from cobre.core.system_overview import System, system_of
from cobre.errors import SimulationError, SolverError, ValidationError
from cobre.io.case import load_case
from cobre.io.case_overview import check_folder
from cobre.policy.object import Policy
from cobre.policy.store import check_fit, load_policy
from cobre.runs.files import OUTPUT
from cobre.runs.summary import RunSummary
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.study.placement import WorldRequest
from cobre.study.preparation.prepare import prepare
from cobre.study.script_run import ScriptRun, simulate_and_store
from cobre.study.training.iteration_callback import IterationCallback
from cobre.study.validation import validate_as_dict


def script_run(
    case_dir: str | Path,
    output_dir: str | Path | None,
    config_overrides: Mapping[str, Any] | None,
    world: WorldRequest,
    *,
    overwrite: bool,
) -> ScriptRun:
    """What `Study` and `cobre.run.run` run. Raises CaseIoError where there is no such case."""
    check_folder(case_dir)
    output = Path(case_dir) / OUTPUT if output_dir is None else Path(output_dir)
    return ScriptRun(Path(case_dir), output, dict(config_overrides or {}), world, overwrite)


class Study:
    """A case and its output directory: `train`, `simulate` and `load_policy` read and write there, step by step.

    output_dir: None: CASE/output. threads, num_workers, backend, comm, config_overrides: as in `cobre.train`.
    overwrite: an earlier run in the output directory may be replaced.

    Raises CaseIoError where there is no such case, and ValidationError for an invalid one.

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
    ) -> None:
        world = WorldRequest(backend, num_workers, threads, comm)
        self._run = script_run(case_dir, output_dir, config_overrides, world, overwrite=overwrite)
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
        return study_facts(self._prepared)

    @cached_property
    def _prepared(self) -> PreparedStudy:
        return prepare(self._case)

    def validate(self) -> dict[str, Any]:
        """`valid`, `errors` and `warnings`, as `cobre.io.validate` has them; files with errors make no study."""
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
        """The policy that a run left in an output directory; raises PolicyIncompatibleError for another study's."""
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
