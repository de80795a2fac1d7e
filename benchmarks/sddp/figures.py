"""The numbers that are to be reached, from the runs. Every figure is a median over rounds with its range."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sddp.results import Results, Spread
from sddp.runs import Run, workers_name

OURS, PEER, LOOP = "cobre", "cobre-python", "highspy loop"
SHORT = " (short)"  # the name of a study's shorter run, beside the reference loop
EARLY = slice(8, 24)  # iterations 9 to 24
LATE = slice(-16, None)
LONG_ENOUGH = 64  # iterations, for early and late to be different

BESIDE_PEER = {
    "1dtoy": 0.18,
    "4ree": 0.04,
    "large": 0.12,
    "deck-2x1": 0.35,
    "deck-6x4": 0.3,
    "hydros-160": 0.25,
    "hydros-80": 0.2,
    "planes-25": 0.3,
    "planes-100": 0.3,
}
US_PER_PIVOT = {"deck-2x1": 20.0, "deck-6x4": 20.0}
SAME_START = 1e-9
SAME_LOWER_START = {"deck-2x1": 1e-8, "deck-6x4": 1e-8}  # the peer's tolerances show in numbers of this size
# Production planes leave each program a choice of duals, hence of cuts: there the first paths must cost the same.
CHOICE_OF_DUALS = ("planes-25", "planes-100")
SAME_LOOP = 1e-6  # highspy runs with its own, larger tolerances
SAME_BOUND = {"4ree": 1e-4}
SOLVER_SHARE = {"four_regions": 0.85, "large": 0.85}
PYTHON_SHARE = {"four_regions": 0.05, "large": 0.05}
LATE_BESIDE_EARLY = {"4ree": 1.8}
LOOP_BESIDE_OURS = {"1dtoy": 1.3, "4ree": 1.3, "four_regions": 1.3}
TWO_THREADS = {"4ree": 1.7, "large": 1.7, "four_regions": 1.7, "deck-6x4": 1.8}
MEMORY = {"4ree": 2.0}
TWO_WORKERS = {"four_regions": 1.9, "large": 1.9, "deck-6x4": 1.9}
WORKERS_BESIDE_THREADS = {"four_regions": 1.02, "large": 1.02, "deck-6x4": 1.02}
WAITING = {"four_regions": 0.05, "large": 0.05}
CHECKPOINT = {"large": 0.05}
START_S = {"start": 0.4}
CHECKED = "cobre, checkpoints"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of one study; `at_most` False: the target is a minimum."""

    title: str
    study: str
    value: Spread
    target: float | None
    at_most: bool = True

    @property
    def is_met(self) -> bool | None:
        """Return whether the target is met; None without a target."""
        if self.target is None:
            return None
        return self.value.median <= self.target if self.at_most else self.value.median >= self.target


def all_figures(results: Results, studies: Sequence[str], threads: Sequence[int]) -> list[Figure]:
    """Return all figures, in the order of the report."""
    return [figure for study in studies for figure in StudyFigures(results, study).all(threads)]


@dataclass(frozen=True, slots=True)
class StudyFigures:
    """The figures of one study."""

    results: Results
    study: str

    def all(self, threads: Sequence[int]) -> Iterator[Figure]:
        """Yield the figures in the order of the report, without those that were not measured."""
        for count in threads:
            yield from self.beside_peer(count)
        yield from self.bounds()
        yield from self.pivots()
        if 2 in threads:
            yield from self.speedup()
        for count in threads:
            yield from self.shares(count)
        yield from self.solve_costs()
        yield from self.beside_loop()
        yield from self.by_workers(2 in threads)
        checked = self.results.of(self.study, CHECKED)
        yield from self._single("a checkpoint beside an iteration", checked, checkpoint_share, CHECKPOINT)
        title = f"memory beyond interpreter and libraries, beside {PEER}"
        yield from self._pairs(title, (OURS, 1), (PEER, 1), memory_ratio, MEMORY)

    def beside_peer(self, threads: int) -> Iterator[Figure]:
        """Yield the figures that compare training time with the peer."""
        title = f"training time beside {PEER}, {threads_text(threads)}"
        yield from self._pairs(title, (OURS, threads), (PEER, threads), time_ratio, BESIDE_PEER)
        title = f"CPU time of training beside {PEER}, {threads_text(threads)}"
        yield from self._pairs(title, (OURS, threads), (PEER, threads), cpu_ratio, {})

    def pivots(self) -> Iterator[Figure]:
        """Yield the time per pivot inside the solver, and the number of pivots per solve."""
        for name, targets in ((OURS, US_PER_PIVOT), (PEER, {})):
            runs = [run for run in self.results.of(self.study, name) if sum(run.pivots)]
            yield from self._single(f"microseconds a pivot, {name}", runs, lambda run: run.us_per_pivot, targets)
            yield from self._single(f"pivots a solve, {name}", runs, pivots_a_solve, {})

    def bounds(self) -> Iterator[Figure]:
        """Yield the differences of bounds, which show that both programs solve the same study."""
        first, final = (f"relative difference of the {which} lower bounds" for which in ("first", "final"))
        has_choice = self.study in CHOICE_OF_DUALS
        same = {} if has_choice else {self.study: SAME_LOWER_START.get(self.study, SAME_START)}
        yield from self._pairs(first, (OURS, 1), (PEER, 1), first_bounds_apart, same)
        if has_choice:
            title, same = "relative difference of the first upper bounds", {self.study: SAME_START}
            yield from self._pairs(title, (OURS, 1), (PEER, 1), first_upper_bounds_apart, same)
        yield from self._pairs(final, (OURS, 1), (PEER, 1), bounds_apart, SAME_BOUND)

    def speedup(self) -> Iterator[Figure]:
        """Yield the speed-up of a second thread."""
        for name, targets in ((OURS, TWO_THREADS), (PEER, {})):
            title = f"two threads of {name}: times the speed of one"
            yield from self._pairs(title, (name, 1), (name, 2), time_ratio, targets, at_most=False)

    def shares(self, threads: int) -> Iterator[Figure]:
        """Yield the shares of training time in the solver and in Python."""
        runs = self.results.of(self.study, OURS, threads)
        inside = f"share of the training inside the solver, {threads_text(threads)}"
        yield from self._single(inside, runs, solver_share(threads), SOLVER_SHARE, at_most=False)
        yield from self._single(
            f"share of the training in Python, {threads_text(threads)}", runs, python_share, PYTHON_SHARE
        )

    def solve_costs(self) -> Iterator[Figure]:
        """Yield the growth of the cost of a solve with the cuts; the peer solves the same number of LPs."""
        ours = self.results.of(self.study, OURS)
        if not ours or len(ours[0].solves) < LONG_ENOUGH:
            return
        solves = ours[0].solves
        for name, targets in ((OURS, LATE_BESIDE_EARLY), (PEER, {})):
            runs = self.results.of(self.study, name)
            yield from self._single(
                f"a late solve beside an early one, {name}", runs, late_beside_early(solves), targets
            )

    def beside_loop(self) -> Iterator[Figure]:
        """Yield the difference of bounds and the speed relative to the same loop over highspy."""
        ours, loop = (OURS + SHORT, 1), (LOOP, 1)
        same = dict.fromkeys([self.study], SAME_LOOP)
        title = "relative difference of the first lower bounds, loop over highspy"
        yield from self._pairs(title, ours, loop, first_bounds_apart, same)
        title = "speed beside the same loop over highspy"
        yield from self._pairs(title, loop, ours, time_ratio, LOOP_BESIDE_OURS, at_most=False)

    def by_workers(self, has_threads: bool) -> Iterator[Figure]:
        """Yield the speed-up of shm processes, and the share of time that they wait."""
        one, two, four = ((workers_name(count), 1) for count in (1, 2, 4))
        title = "two workers of one thread: times the speed of one"
        yield from self._pairs(title, one, two, time_ratio, TWO_WORKERS, at_most=False)
        if has_threads:
            title = "two workers beside two threads: training time"
            yield from self._pairs(title, two, (OURS, 2), time_ratio, WORKERS_BESIDE_THREADS)
        runs = self.results.of(self.study, two[0])
        yield from self._single("two workers: share of waiting, imbalance apart", runs, waiting_share, WAITING)
        yield from self._single("two workers: share of waiting for the slower one", runs, imbalance_share, {})
        yield from self._pairs("start of four workers beyond that of one, s", four, one, wall_difference, START_S)

    def _pairs(
        self,
        title: str,
        left: tuple[str, int],
        right: tuple[str, int],
        measure: Callable[[Run, Run], float],
        targets: Mapping[str, float],
        *,
        at_most: bool = True,
    ) -> Iterator[Figure]:
        """Yield the figure of a measure of two runs of the same round."""
        pairs = zip(self.results.of(self.study, *left), self.results.of(self.study, *right), strict=False)
        yield from self._figure(title, [measure(one, other) for one, other in pairs], targets, at_most)

    def _single(
        self,
        title: str,
        runs: Sequence[Run],
        measure: Callable[[Run], float],
        targets: Mapping[str, float],
        *,
        at_most: bool = True,
    ) -> Iterator[Figure]:
        """Yield the figure of a measure taken from every run."""
        yield from self._figure(title, [measure(run) for run in runs], targets, at_most)

    def _figure(self, title: str, values: list[float], targets: Mapping[str, float], at_most: bool) -> Iterator[Figure]:
        if values:
            yield Figure(title, self.study, Spread.of(values), targets.get(self.study), at_most)


def time_ratio(one: Run, other: Run) -> float:
    """Return the ratio of training times of a round."""
    return one.training_s / other.training_s


def cpu_ratio(one: Run, other: Run) -> float:
    """Return the ratio of CPU times of a round, which other load on the machine hardly affects."""
    return one.cpu_s / other.cpu_s


def pivots_a_solve(run: Run) -> float:
    """Return the mean number of pivots per solve."""
    return sum(run.pivots) / sum(run.solves)


def first_bounds_apart(one: Run, other: Run) -> float:
    """Return the relative difference of the first lower bounds."""
    return abs(one.first_lower_bound - other.first_lower_bound) / abs(other.first_lower_bound)


def first_upper_bounds_apart(one: Run, other: Run) -> float:
    """Return the relative difference of the first iteration's path costs, which no cuts affect yet."""
    return abs(one.first_upper_bound - other.first_upper_bound) / abs(other.first_upper_bound)


def bounds_apart(one: Run, other: Run) -> float:
    """Return the relative difference of the final lower bounds."""
    return abs(one.lower_bound - other.lower_bound) / abs(other.lower_bound)


def memory_ratio(one: Run, other: Run) -> float:
    """Return the ratio of memory growth since before the case was read."""
    return one.growth_bytes / other.growth_bytes


def solver_share(threads: int) -> Callable[[Run], float]:
    """Return the share of all thread time spent inside the solver."""
    return lambda run: sum(run.solver_s) / (threads * run.training_s)


def python_share(run: Run) -> float:
    """Return the share of time outside of solver calls."""
    return 1.0 - run.call_s / run.training_s


def waiting_share(run: Run) -> float:
    """Return the share of time in exchanges, without waiting for ranks that had more work."""
    return (sum(run.waiting_s) - sum(run.imbalance_s)) / (len(run.waiting_s) * run.training_s)


def imbalance_share(run: Run) -> float:
    """Return the share of training time spent waiting for ranks with more work."""
    return sum(run.imbalance_s) / (len(run.imbalance_s) * run.training_s)


def checkpoint_share(run: Run) -> float:
    """Return the time that training waits for a checkpoint, relative to an iteration."""
    return median(run.checkpoint_s) / median(run.iteration_s)


def wall_difference(one: Run, other: Run) -> float:
    """Return the difference in seconds from the call to the result."""
    return one.wall_s - other.wall_s


def late_beside_early(solves: Sequence[int]) -> Callable[[Run], float]:
    """Return the mean time per solve in late iterations relative to early ones (medians over iterations)."""

    def measure(run: Run) -> float:
        costs = [seconds / count for seconds, count in zip(run.iteration_s, solves, strict=True)]
        return median(costs[LATE]) / median(costs[EARLY])

    return measure


def threads_text(threads: int) -> str:
    """Return the number of threads as text."""
    return {1: "one thread", 2: "two threads"}.get(threads, f"{threads} threads")
