"""Upper bounds of a policy, valid also under a risk measure, for `cobre bound` and `cobre.bound`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cobre.comm import Backend, BackendConfig
from cobre.core.bounds import (
    DEFAULT_CONFIDENCE,
    DEFAULT_MAX_NODES,
    DEFAULT_PATHS,
    BoundMethod,
    BoundPlan,
    UpperBound,
    relative_gap,
)
from cobre.core.case import Case
from cobre.core.file_names import BOUND_FILE, OUTPUT, STUDY_FILE
from cobre.errors import OutputError, PolicyIncompatibleError
from cobre.io.policies.policy_file import find_policy_file
from cobre.io.storage.stored_json import write_json
from cobre.policy.object import Policy
from cobre.policy.store import fill_pool
from cobre.records import dataclass
from cobre.runs.events import EventListener, no_events
from cobre.runs.trained_case import TrainedCase, case_of_run
from cobre.sddp.upper_bounds.find import find_upper_bound
from cobre.study.arguments import case_and_overrides, check_policy, checked_count
from cobre.study.placement import Placement, WorldRequest, call_on_ranks, raising_worker_errors, script_placement
from cobre.study.preparation.on_ranks import ReadyStudy, prepare_on_ranks
from cobre.study.requests import CaseRequest
from cobre.study.training.initial_policy import case_of_policy, difference_in_words, share_policy
from cobre.study.training.stop_request import exit_if_terminated
from cobre.study.training.train import training_context
from cobre.text import gap_percent, money

NO_LOWER_BOUND = (
    "not a bound of this cost, because inflows truncated at zero depend on their past (one of the cost of inflows that "
    "are not truncated, method penalty)"
)
_UNKNOWN_PROBLEM = (
    "the policy file does not record the case that it was trained on; the lower bound is valid only if it was this one"
)


class NothingToBoundError(OutputError):
    """A bound that was requested without a policy or a case."""

    remedy = "give the output directory of a run, or a case and its policy"


class CaseChangedError(PolicyIncompatibleError):
    """A policy that was trained on another problem than that of the case; usually a file has changed since."""


@dataclass(frozen=True, slots=True)
class PolicyBound:
    """An upper bound of a policy. is_risk_averse: of its nested risk, not of its expected cost.

    notes: restrictions of its validity. lower_bound_is_valid: False if the cost-to-go is not convex, so that the
    lower bound may be above the cost of the policy.
    """

    bound: UpperBound
    is_risk_averse: bool
    notes: tuple[str, ...] = ()
    lower_bound_is_valid: bool = True

    @property
    def upper_bound(self) -> float | None:
        """The upper bound, $; of a sample the middle of its interval.

        Under a risk measure a sample gives an estimate from below (`policy_cost`), and this is a bound in expectation,
        at the upper end of its interval; None if that says nothing because there are too many stages.
        """
        return self.bound.upper_bound

    @property
    def policy_cost(self) -> float | None:
        """The cost of the policy, $: exact, or estimated; None for an inner approximation."""
        return self.bound.policy_cost

    @property
    def lower_bound(self) -> float:
        """The lower bound of the same cuts, $."""
        return self.bound.lower_bound

    @property
    def gap(self) -> float:
        """From the lower bound to the cost of the policy, or to the bound by inner approximation, relative to it."""
        return self.bound.gap

    @property
    def gap_at_most(self) -> float | None:
        """From the lower bound to the upper end of the interval, relative to the lower bound.

        Of an estimate under a risk measure, to `upper_bound`; None if there is none.
        """
        return self.bound.gap_at_most

    def as_dict(self) -> dict[str, Any]:
        """Return the content of bound.json."""
        notes = {"notes": list(self.notes)} if self.notes else {}
        kind = {"is_risk_averse": self.is_risk_averse, "lower_bound_is_valid": self.lower_bound_is_valid}
        return self.bound.as_dict() | kind | notes

    def __str__(self) -> str:
        return "\n".join((*self._lines(), *(f"note: {note}" for note in self.notes)))

    def _lines(self) -> Iterator[str]:
        bound = self.bound
        yield f"lower bound {money(bound.lower_bound)} ${'' if self.lower_bound_is_valid else f': {NO_LOWER_BOUND}'}"
        match bound.method:
            case BoundMethod.ENUMERATION:
                yield f"upper bound {money(bound.value)} $: the exact cost of the policy on all {bound.size:,} nodes"
            case BoundMethod.INNER:
                how = f"inner approximation with {bound.size:,} vertices"
                yield f"upper bound {money(bound.value)} $: of the optimum, by {how}"
            case _:
                yield from self._sampled()
        if not bound.is_estimate:
            limit = "" if bound.is_deterministic else f", at most {gap_percent(bound.gap_at_most)}"
            yield f"gap {gap_percent(bound.gap)} of the lower bound{limit}"

    def _sampled(self) -> Iterator[str]:
        bound = self.bound
        spread = f"{money(bound.value)} ± {money(bound.half_width)} $"
        yield f"cost of the policy {spread}: {bound.size:,} paths, {100 * (bound.confidence or 0.0):g} % confidence"
        if not bound.is_estimate:
            return
        yield "an estimate, not a bound: it approaches the policy's cost under the risk measure from below"
        end = gap_percent(relative_gap(bound.lower_bound, bound.largest))
        yield f"estimated gap {gap_percent(bound.gap)} of the lower bound, up to {end}"
        if bound.at_most is None:
            yield "upper bound: none by sampling, too many stages for this risk measure"
        else:
            gap = gap_percent(bound.gap_at_most)
            yield f"upper bound {money(bound.at_most)} $ (in expectation, upper end of its interval): gap {gap}"


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """The policy to bound. trained: the case of the policy's run, as the run recorded it.

    output: the output directory that the result is written to; None: nowhere.
    """

    case: CaseRequest
    policy: Policy | Path
    plan: BoundPlan
    trained: TrainedCase | None = None
    output: Path | None = None


def bound(
    case: Case | str | Path,
    policy: Policy | str | Path | None = None,
    *,
    method: str = BoundMethod.AUTO,
    paths: int = DEFAULT_PATHS,
    confidence: float = DEFAULT_CONFIDENCE,
    max_nodes: int = DEFAULT_MAX_NODES,
    seed: int = 0,
    num_workers: int | None = None,
    backend: str | BackendConfig = "auto",
    comm: Any = None,
    threads: int | None = None,
) -> PolicyBound:
    """Compute an upper bound of what training minimises; unlike a mean of sampled paths, also under a risk measure.

    case: the output directory of a run, which has the policy too; or a case, whose policy is then given.
    method: `enumeration` (exact: the policy on every path of the opening tree), `inner` (inner approximation:
    deterministic, for few state variables), `sampled` (an estimate with a confidence interval), or `auto`.
    paths: sampled paths; for `inner`, the paths whose states become its vertices. confidence: of the interval.
    max_nodes: the largest tree that is enumerated. seed: of the sampled paths.
    num_workers, backend, comm, threads: as in `train`.

    Raises NothingToBoundError if case or policy is missing, CaseChangedError for a policy of another problem,
    ValueError for a wrong argument, and InvalidCaseError, StageFailedError, BackendError and WorkerError as `train`.

    >>> policy = cobre.train("examples/two_reservoirs", iterations=3).policy
    >>> found = cobre.bound("examples/two_reservoirs", policy, method="sampled", paths=50)
    >>> found.lower_bound <= found.upper_bound, found.gap > 0.0  # $, and relative to the lower bound
    (True, True)
    """
    exit_if_terminated()
    placement = script_placement(WorldRequest(backend, num_workers, threads, comm))
    plan = bound_plan(method, paths, confidence, max_nodes, seed)
    request = bound_request(case, policy, plan, placement.threads)
    with raising_worker_errors():
        return bound_in(placement, request, no_events)


def bound_plan(method: str, paths: int, confidence: float, max_nodes: int, seed: int = 0) -> BoundPlan:
    """Create a bound plan from arguments; raise ValueError for invalid ones."""
    if method not in list(BoundMethod):
        raise ValueError(f"method is {method!r}: expected one of {', '.join(BoundMethod)}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence!r}: expected a number between 0 and 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed is {seed!r}: expected a whole number, 0 or more")
    nodes = checked_count("max_nodes", max_nodes) or 1
    return BoundPlan(BoundMethod(method), _at_least_two(paths), confidence, nodes, seed)


def bound_request(
    case: Case | str | Path,
    policy: Policy | str | Path | None,
    plan: BoundPlan,
    threads: int,
    moved_to: Path | None = None,
) -> BoundRequest:
    """Locate case and policy; raises `NothingToBoundError` when one of them is missing.

    moved_to: the present directory of the case of the run. Overrides of the run apply here as well.
    """
    located, stored, output = _case_and_policy(case, policy, moved_to)
    trained = case_of_policy(stored)
    settings = trained.overrides if trained is not None and isinstance(located, Path) else None
    checked, overrides = case_and_overrides(located, settings or None)
    return BoundRequest(CaseRequest(checked, overrides, threads), stored, plan, trained, output)


def _at_least_two(paths: int) -> int:
    if (checked_count("paths", paths) or 0) < 2:
        raise ValueError(f"paths is {paths}: a confidence interval needs at least 2")
    return paths


def bound_in(placement: Placement, request: BoundRequest, emit: EventListener) -> PolicyBound:
    """Compute the bound on the ranks of a world; in a joined world only rank 0 emits events."""
    return call_on_ranks(placement, bound_rank, (request,), emit)[0]


def bound_rank(comm: Backend, request: BoundRequest, emit: EventListener) -> PolicyBound:
    """Compute the bound on every rank; rank 0 writes it."""
    ready = prepare_on_ranks(comm, request.case, emit)
    policy = share_policy(comm, request.policy)
    notes = _checked_problem(ready, policy, request.trained)
    is_valid = ready.study.problem.is_convex
    context = training_context(comm, ready.study, ready.solver, paths=1)
    fill_pool(context.pool, policy, ready.study)
    bound = find_upper_bound(context, request.plan)
    result = PolicyBound(bound, ready.study.is_risk_averse, notes, lower_bound_is_valid=is_valid)
    context.team.close()
    context.pool.close()
    if comm.rank == 0 and request.output is not None:
        write_bound(request.output, result)
    comm.check_failures()
    return result


def _checked_problem(ready: ReadyStudy, policy: Policy, trained: TrainedCase | None) -> tuple[str, ...]:
    """Raise CaseChangedError for a policy of another problem; return a note for one that records no problem."""
    how = difference_in_words(policy, ready.study, trained, ready.folder)
    if how is not None:
        where = "this case" if ready.folder is None else str(ready.folder)
        raise CaseChangedError(
            f"{how}. Bounds for {where} would be wrong: restore the case, name the directory that still holds it "
            "(cobre bound RUN --case DIR), or train again"
        )
    return () if policy.problem else (_UNKNOWN_PROBLEM,)


def write_bound(output: Path, bound: PolicyBound) -> None:
    """Write bound.json of an output directory, for its report."""
    write_json(output / BOUND_FILE, bound.as_dict())


def _case_and_policy(
    case: Case | str | Path, policy: Policy | str | Path | None, moved_to: Path | None
) -> tuple[Case | Path, Policy | Path, Path | None]:
    """Return the case, its policy and the output directory, None if the policy was named."""
    if policy is not None:
        check_policy("policy", policy)
        return Path(case) if isinstance(case, str) else case, Path(policy) if isinstance(policy, str) else policy, None
    if isinstance(case, Case):
        raise ValueError("a case in memory has no policy: give one, such as cobre.train(case).policy")
    return _locate_in(Path(case), moved_to)


def _locate_in(folder: Path, moved_to: Path | None) -> tuple[Path, Path, Path]:
    """Locate case and policy by the output directory of a run, or by a case with its output directory inside."""
    output = folder if (folder / STUDY_FILE).exists() else folder / OUTPUT
    if not find_policy_file(output).exists():
        missing = _missing_input(folder, output)
        raise NothingToBoundError(f"{missing}: give the output directory of a run, or a case and its policy (--policy)")
    if output != folder:
        return moved_to or folder, output, output
    return moved_to or _case_folder(folder), folder, folder


def _case_folder(run: Path) -> Path:
    trained = case_of_run(run)
    folder = None if trained is None else trained.folder
    if folder is not None and folder.is_dir():
        return folder
    if trained is None:
        where = f"is not known, because {run / STUDY_FILE} cannot be read"
    else:
        where = "was in memory" if folder is None else f"{folder} no longer exists"
    raise NothingToBoundError(f"the case of {run} {where}: give its directory, cobre bound {run} --case DIR")


def _missing_input(folder: Path, output: Path) -> str:
    if not folder.is_dir():
        return f"{folder} is not a directory" if folder.exists() else f"{folder} does not exist"
    return f"{folder} holds no policy" + ("" if output == folder else f", nor does {output}")
