"""The state of a run from its events, for terminals, live views, notebooks, reports and exports."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cobre.core.policy_cost import NO_POLICY_COST
from cobre.core.stopping import StopKind
from cobre.core.verdict import BoundHistory, ComputedBound, ConvergenceVerdict, PathCosts, verdict
from cobre.io.storage.confined import MAX_BYTES, read_untrusted
from cobre.records import dataclass
from cobre.runs.events import Event, number_of, numbered_lines
from cobre.runs.run_state import LastActivity, RunState, end_state, state_of
from cobre.text import duration_rounded, printable_event, size

PHASES = ("forward", "backward", "bound", "exchange")
RECENT = 10


@dataclass
class RankTotal:
    """Times of a rank since the run was last started: seconds, over all iterations.

    times_slowest: iterations in which no other rank was busy for longer.
    """

    busy_s: float = 0.0
    waiting_s: float = 0.0
    times_slowest: int = 0

    @property
    def busy_share(self) -> float:
        """Of its time, 0 to 1; 0 before the first iteration."""
        return self.busy_s / ((self.busy_s + self.waiting_s) or 1.0)


@dataclass
class RunView:
    """The state of a run, updated by every event. Money is $.

    started, trained, simulated, finished, failed and checkpoint are the last events of their kind; until the first,
    started is empty and the others are None.
    iterations: in order, each number once, those included that a resumed run took over. A run that is started anew
    forgets everything; one that is resumed keeps its iterations. loads: by rank.
    """

    started: Event = field(default_factory=dict)
    phase: str = "starting"
    phases: list[Event] = field(default_factory=list)
    iteration_limit: int | None = None
    iterations: list[Event] = field(default_factory=list)
    loads: list[RankTotal] = field(default_factory=list)
    phase_seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    is_exact: bool = False  # the upper bound, of all paths of a tree
    is_risk_averse: bool = False
    has_policy_cost: bool = False  # iterations have the cost of the policy
    warnings: list[str] = field(default_factory=list)
    checkpoint: Event | None = None
    progress: Event | None = None  # of the iteration that is being computed
    preparation: Event | None = None  # the step before the first iteration that was last heard of
    estimate: Event | None = None  # of the whole training, in its first iteration
    resumed: Event | None = None  # training went on after the iterations of a checkpoint
    trained: Event | None = None
    simulated: Event | None = None
    finished: Event | None = None
    failed: Event | None = None
    last_time: float = 0.0

    def take_all(self, events: Iterable[Event]) -> None:
        """Take several events, in order."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take one; kinds that are not known change nothing. Its texts are made safe to show."""
        event = printable_event(event)
        self.last_time = number_of(event.get("time")) or self.last_time
        with suppress(KeyError, TypeError, ValueError):  # ignore unknown or malformed events
            self._take(event)

    def _take(self, event: Event) -> None:
        match event["event"]:
            case "run_started":
                self._start(event)
            case "phase":
                self._enter(event)
            case "iteration" | "resumed":
                (self._iterate if event["event"] == "iteration" else self._resume)(event)
            case "warning":
                self.warnings.append(str(event.get("message", "")))
            case "progress" | "checkpoint" | "estimate" | "preparation":
                setattr(self, event["event"], event)
            case "training_finished":
                self.trained = event
            case "simulation_finished":
                _check_simulation(event)
                self.simulated = event
            case "run_finished":
                self.finished, self.phase = event, "stopped" if self._was_interrupted else "finished"
            case "run_failed":
                self.failed, self.phase = event, "failed"

    def _start(self, event: Event) -> None:
        """Begin a run; a resumed one keeps its earlier iterations, and counts loads of ranks from zero."""
        iterations = self.iterations if event.get("is_resumed") else []
        fresh = RunView(started=event, iterations=iterations, last_time=self.last_time)
        self.__dict__.update(fresh.__dict__)

    def _resume(self, event: Event) -> None:
        """Continue after an iteration; a view without the earlier ones, as in a terminal, takes them from the event."""
        last = event["iteration"]
        if not isinstance(last, int):
            raise TypeError("an iteration has a whole number")
        if not self.iterations:
            earlier = list(event.get("iterations", ()))
            for iteration in earlier:
                _check_iteration(iteration)
            self.iterations = earlier
        self.iterations = [iteration for iteration in self.iterations if iteration["iteration"] <= last]
        self.resumed = event

    def _enter(self, event: Event) -> None:
        self.phase = str(event.get("name", ""))
        self.progress = None
        if self.phase == "training":
            self.preparation = None
        self.phases.append(event)
        self.iteration_limit = event.get("iteration_limit", self.iteration_limit)
        self.is_exact = bool(event.get("is_exact", self.is_exact))
        self.is_risk_averse = bool(event.get("is_risk_averse", self.is_risk_averse))
        self.has_policy_cost = bool(event.get("has_policy_cost", self.has_policy_cost))

    def _iterate(self, event: Event) -> None:
        """Append it; later iterations are superseded: the run resumed from an older checkpoint."""
        _check_iteration(event)
        self.progress = None
        while self.iterations and self.iterations[-1]["iteration"] >= event["iteration"]:
            self.iterations.pop()
        self.iterations.append(event)
        for name in PHASES:
            self.phase_seconds[name] += number_of(event.get(f"{name}_s")) or 0.0
        self._add_loads(event.get("load", ()))

    def _add_loads(self, loads: Sequence[Sequence[float]]) -> None:
        if not loads:
            return
        if len(self.loads) != len(loads):
            self.loads = [RankTotal() for _ in loads]
        for total, (busy_s, waiting_s) in zip(self.loads, loads, strict=True):
            total.busy_s += busy_s
            total.waiting_s += waiting_s
        slowest = max(range(len(loads)), key=lambda rank: loads[rank][0])
        self.loads[slowest].times_slowest += 1

    @property
    def last(self) -> Event | None:
        """The event of the last iteration; None before the first."""
        return self.iterations[-1] if self.iterations else None

    @property
    def bounds(self) -> BoundHistory:
        """The bounds so far; iterations without numbers are left out."""
        return self._bounds_of(self.iterations)

    def _bounds_of(self, iterations: Sequence[Event]) -> BoundHistory:
        names = ("lower_bound", "upper_bound", "half_width")
        rows = [[number_of(event.get(name)) for name in names] for event in iterations]
        complete_rows = [[value for value in row if value is not None] for row in rows if None not in row]
        lower, upper, half = zip(*complete_rows, strict=True) if complete_rows else ((), (), ())
        bounds = BoundHistory(lower, upper, half, self.is_exact, self.is_risk_averse, self.computed_bound)
        points = (self.last or {}).get("trial_points")
        overstated = number_of(points.get("overstated")) if isinstance(points, Mapping) else None
        return replace(bounds, overstated=overstated, single_path_cost=self.single_path_cost)

    @property
    def verdict(self) -> ConvergenceVerdict | None:
        """On the bounds so far."""
        return verdict(self.bounds, is_interrupted=self._was_interrupted)

    @property
    def computed_bound(self) -> ComputedBound | None:
        """The bound of the stopping rule `upper_bound`; else the cost of the policy, so far or after training."""
        end, last = self.trained or {}, self.last or {}
        if number_of(end.get("policy_cost")) is None:
            end = {**end, **{name: last.get(name) for name in NO_POLICY_COST}}
        lower = number_of(last.get("lower_bound"))
        return ComputedBound.of_run(lower, end, is_exact=self.is_exact, is_risk_averse=self.is_risk_averse)

    @property
    def gap(self) -> float | None:
        """The gap after the last iteration, as `BoundHistory.gap` decides; None before the first."""
        return self._bounds_of(self.iterations[-1:]).gap

    @property
    def single_path_cost(self) -> float | None:
        """The cost of the policy if it has no confidence interval, $: from a single path, no risk measure."""
        if self.computed_bound is not None or self.is_exact or self.is_risk_averse:
            return None
        cost = number_of((self.trained or {}).get("policy_cost"))
        return cost if cost is not None else number_of((self.last or {}).get("policy_cost"))

    @property
    def path_costs(self) -> PathCosts:
        """The meaning of `upper_bound` in iterations, and its name."""
        return PathCosts(self.is_exact, self.is_risk_averse, self.computed_bound is not None)

    @property
    def is_simulation_only(self) -> bool:
        """Whether a stored policy is simulated: training would have emitted an iteration by then."""
        is_past_training = self.simulated is not None or self.finished is not None or self.phase == "simulation"
        return is_past_training and not self.iterations

    @property
    def no_bounds_reason(self) -> str:
        """Why there are no bounds to show; meaningful while `iterations` is empty."""
        if self.is_simulation_only:
            return "stored policy, no training"
        return "no iteration finished" if self.failed else "no iteration yet"

    @property
    def began(self) -> float:
        """When the run started, in seconds since 1970 (UTC)."""
        return number_of(self.started.get("time")) or self.last_time

    def seconds(self, now: float) -> float:
        """Return how long the run has been running, or ran, in seconds."""
        end = self.last_time if self.finished or self.failed else max(now, self.last_time)
        return max(0.0, end - self.began)

    @property
    def _recent(self) -> list[Event]:
        """The last iterations, without those before the run was resumed: the break would count as work."""
        return [event for event in self.iterations[-RECENT - 1 :] if event["time"] >= self.began]

    @property
    def iterations_per_s(self) -> float | None:
        """Over the last ten iterations, by the times of their events; None before the second one."""
        return _rate(self._recent, lambda _: 1)

    @property
    def solves_per_s(self) -> float | None:
        """LPs solved per second over the last ten iterations, by all ranks together."""
        return _rate(self._recent, lambda event: event.get("solves") or 0)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the iteration limit, at the last event; other rules may stop earlier.

        By the times of the last ten iterations; before the second, by the progress of the one that is being computed.
        """
        if self.iteration_limit is None or self.phase != "training":
            return None
        progress = self.progress or {}
        spent_s, rest_s = (number_of(progress.get(name)) for name in ("elapsed_s", "seconds_left"))
        rate = self.iterations_per_s
        if rate is not None and self.last is not None:
            all_left_s = max(0.0, float(self.iteration_limit - self.last["iteration"])) / rate
            return max(rest_s or 0.0, all_left_s - (spent_s or 0.0))
        if spent_s is None or rest_s is None:
            return None
        later = max(0.0, self.iteration_limit - (number_of(progress.get("iteration")) or 1.0))
        return rest_s + later * (spent_s + rest_s)

    @property
    def estimate_in_words(self) -> str:
        """Estimated duration of the training: `about 4.5 h on 2 cores for 45 iterations of 200 paths, ...`."""
        if (estimate := self.estimate) is None:
            return ""
        names = ("seconds", "cores", "iterations", "forward_passes", "cut_bytes")
        numbers = [number_of(estimate.get(name)) for name in names]
        seconds, cores, iterations, passes, cut_bytes = (0.0 if number is None else number for number in numbers)
        where = f"{cores:.0f} cores" if cores > 1 else "one core"
        text = f"about {duration_rounded(seconds)} on {where} for {iterations:.0f} iterations of {passes:.0f} paths"
        return f"{text}, and up to {size(int(cut_bytes))} of cuts"

    @property
    def preparation_in_words(self) -> str:
        """The step before the first iteration: `building the LPs of stages, 37 of 120`."""
        if (preparation := self.preparation) is None:
            return ""
        done, total = number_of(preparation.get("done")), number_of(preparation.get("total"))
        parts = f", {done:.0f} of {total:.0f}" if done is not None and total else ""
        return f"{preparation.get('step', '')}{parts}"

    @property
    def progress_in_words(self) -> str:
        """How far the current iteration is: `iteration 3: backward pass, stage 14; 1,200 of 4,800 LPs (25 %)`."""
        return self._progress_in_words("; {done:,.0f} of {total:,.0f} LPs ({percent:.0f} %)")

    @property
    def progress_in_brief(self) -> str:
        """The same for narrow terminals: `iteration 3: backward pass, stage 14, 25 %`."""
        return self._progress_in_words(", {percent:.0f} %")

    def _progress_in_words(self, share: str) -> str:
        progress = self.progress
        if progress is None:
            return ""
        where = f"{progress['pass']} pass" if progress.get("pass") in ("forward", "backward") else "lower bound"
        stage = f", stage {progress['stage']}" if "stage" in progress else ""
        done, total = number_of(progress.get("solves")) or 0.0, number_of(progress.get("total_solves"))
        head = f"iteration {progress.get('iteration')}: "
        if not total:
            return f"{head}{done:,.0f} LPs"
        return f"{head}{where}{stage}{share.format(done=done, total=total, percent=100 * done / total)}"

    def series(self, name: str) -> list[float | None]:
        """Return a number of all iterations; None if there was none."""
        return [number_of(event.get(name)) for event in self.iterations]

    def state(self, folder: Path) -> RunState:
        """Return the state of the run in this output directory."""
        return state_of(folder, self.last_activity, **self._end)

    def end_state(self, folder: Path) -> RunState | None:
        """Return how the run in this output directory ended; None if it has not ended."""
        return end_state(folder, **self._end)

    @property
    def _end(self) -> dict[str, bool]:
        return {
            "has_failed": self.failed is not None,
            "has_finished": self.finished is not None,
            "is_interrupted": self._was_interrupted,
        }

    @property
    def last_activity(self) -> LastActivity:
        """The host of the run, and the time of its last event."""
        host = self.started.get("host")
        times = [event["time"] for event in self.iterations[-RECENT - 1 :]]
        gaps = [after - before for before, after in pairwise(times)]
        return LastActivity(host if isinstance(host, str) else None, self.last_time, max(gaps, default=0.0))

    @property
    def _was_interrupted(self) -> bool:
        kind = (self.trained or {}).get("stop_kind")
        return kind in list(StopKind) and StopKind(kind).is_interruption


def view_of(events: Iterable[Event]) -> RunView:
    """Build the view of a run from its events."""
    view = RunView()
    view.take_all(events)
    return view


def read_view(path: Path) -> tuple[RunView, list[int]]:
    """Read the event log at this path; return the view of its run and the numbers of the lines that cannot be read.

    A last line without its end is still being written, and does not count as damage. Without a file there is nothing to
    know: the view of a run that has not started.
    """
    try:
        lines = numbered_lines(read_untrusted(path, MAX_BYTES))
    except FileNotFoundError:
        return RunView(), []
    damaged = [number for number, event in lines if event is None]
    return view_of(event for _, event in lines if event is not None), damaged


def _check_iteration(event: Event) -> None:
    """Raise for one that could not be drawn, before anything of it is taken."""
    if not isinstance(event["iteration"], int):
        raise TypeError("an iteration has a whole number")
    _check_numbers(event[name] for name in ("iteration", "time", "cuts"))
    _check_numbers(seconds for busy, waiting in event.get("load", ()) for seconds in (busy, waiting))
    numbers = [event[name] for name in ("lower_bound", "upper_bound", "half_width", "gap")]
    numbers += [event.get(name) for name in ("solves", "policy_gap", *NO_POLICY_COST)]
    _check_numbers(value for value in numbers if value is not None)


def _check_simulation(event: Event) -> None:
    numbers = [event[name] for name in ("mean_cost", "half_width")]
    numbers += [event.get(name) for name in ("controlled_mean_cost", "controlled_half_width")]
    _check_numbers([event["scenarios"], *(value for value in numbers if value is not None)])


def _check_numbers(values: Iterable[Any]) -> None:
    if any(number_of(value) is None for value in values):
        raise TypeError("text or list where a number is expected")


def _rate(recent: Sequence[Event], amount: Any) -> float | None:
    """Return units per second by the clock of events; the first event only starts the clock."""
    if len(recent) < 2:
        return None
    seconds = recent[-1]["time"] - recent[0]["time"]
    return sum(amount(event) for event in recent[1:]) / seconds if seconds > 0 else None
