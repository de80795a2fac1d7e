"""The solver sections of config.json: all keys are accepted, few have an effect."""

from typing import Annotated, Literal

from pydantic import Field

from cobre.core.config import SolverConfig
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import Layer, Problems
from cobre.records import dataclass

Tolerance = Annotated[float, Field(gt=0)]
_SOLVER = SolverConfig()


@dataclass(frozen=True, slots=True)
class SolverProfileRecord:
    """LP solver settings of one phase; null: the default.

    No effect here, with a warning, except for the tolerances of training: LPs are solved the same way everywhere.

    primal_feasibility_tolerance, dual_feasibility_tolerance: of the solves that HiGHS does, because our own simplex
    could not finish them; our own simplex has fixed tolerances. The smallest value of both training phases is used.
    """

    dual_edge_weight: Literal["devex", "steepest_edge", "dantzig"] | None = None
    price: Literal["row", "row_hyper_sparse"] | None = None
    presolve: Literal["on", "off", "choose"] | None = None
    scale: Literal["off", "solver_scaling"] | None = None
    primal_feasibility_tolerance: Tolerance | None = None
    dual_feasibility_tolerance: Tolerance | None = None
    cost_perturbation: float | None = None
    factor_pivot_threshold: float | None = None
    refactor_error_tolerance: float | None = None
    simplex_update_limit: int | None = None
    steepest_edge_devex_fallback_threshold: float | None = None
    use_warm_start: bool | None = None


@dataclass(frozen=True, slots=True)
class TrainingSolverRecord:
    """training.solver.

    retry_max_attempts: number of other settings to try if a solve fails.
    retry_time_budget_seconds: no effect here, with a warning: results must not depend on time.
    forward, backward: one setting is used for both phases.
    """

    retry_max_attempts: Annotated[int, Field(ge=0)] = _SOLVER.retry_max_attempts
    retry_time_budget_seconds: Annotated[float, Field(ge=0)] = _SOLVER.retry_time_budget_seconds
    forward: SolverProfileRecord | None = None
    backward: SolverProfileRecord | None = None


TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")


def solver_config(record: TrainingSolverRecord, problems: Problems) -> SolverConfig:
    """One setting for all phases, so that an LP has the same solution, to the bit, in every phase."""
    warn_of_profile(record.forward, "training.solver.forward", problems, TOLERANCES)
    warn_of_profile(record.backward, "training.solver.backward", problems, TOLERANCES)
    return SolverConfig(
        retry_max_attempts=record.retry_max_attempts,
        retry_time_budget_seconds=record.retry_time_budget_seconds,
        primal_feasibility_tolerance=_one_tolerance(record, TOLERANCES[0], problems),
        dual_feasibility_tolerance=_one_tolerance(record, TOLERANCES[1], problems),
    )


def warn_of_profile(
    profile: SolverProfileRecord | None, section: str, problems: Problems, followed: tuple[str, ...] = ()
) -> None:
    """Warn of each setting that is given and has no effect; those in `followed` have one."""
    for name in SolverProfileRecord.__dataclass_fields__:
        if profile is not None and getattr(profile, name) is not None and name not in followed:
            message = "has no effect: LPs are solved with fixed settings, so that results are the same everywhere"
            problems.warn(Layer.SCHEMA, CONFIG_FILE, "", f"{section}.{name}", message)


def _one_tolerance(record: TrainingSolverRecord, name: str, problems: Problems) -> float | None:
    given = [getattr(phase, name) for phase in (record.forward, record.backward) if phase is not None]
    values = sorted(value for value in given if value is not None)
    if len(values) > 1 and values[0] != values[1]:
        message = f"differs between forward and backward; {values[0]} is used for both"
        problems.warn(Layer.SCHEMA, CONFIG_FILE, "", f"training.solver.*.{name}", message)
    return values[0] if values else None
