"""The results as JSON for programs and as a page for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collectives.report import table
from sddp.figures import LOOP, OURS, PEER, SHORT, Figure, all_figures, threads_text
from sddp.results import Results, Spread
from sddp.runs import Run, workers_name
from sddp.studies import Study

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that goes into the two files."""

    date: str
    machine: dict[str, str]
    studies: Sequence[Study]
    threads: Sequence[int]
    rounds: int
    results: Results

    @property
    def figures(self) -> list[Figure]:
        """Return all figures, with and without targets."""
        return all_figures(self.results, [study.name for study in self.studies], self.threads)

    def to_json(self) -> dict[str, Any]:
        """Return every run of every round, and the figures."""
        runs = [
            {"study": study, "contender": contender, "threads": threads, "rounds": [run.to_json() for run in runs]}
            for (study, contender, threads), runs in self.results.runs.items()
        ]
        figures = [asdict(figure) | {"met": figure.is_met} for figure in self.figures]
        return {
            "date": self.date,
            "machine": self.machine,
            "rounds": self.rounds,
            "figures": figures,
            "runs": runs,
            "not measured": self.results.not_measured,
        }

    def to_markdown(self) -> str:
        """Render the report as one page."""
        parts = (
            self._head(),
            self._targets(),
            self._times(),
            self._bounds(),
            self._memory(),
            self._rest(),
            self._notes(),
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    def _head(self) -> str:
        facts = ", ".join(f"{name}: {value}" for name, value in self.machine.items())
        return (
            f"# Training, side by side\n\nMeasured {self.date} by `make bench-sddp`; {facts}.\n\n"
            f"Contenders take turns, {self.rounds} round(s), each run in a process of its own with the same "
            "configuration. Shown is the median round (lowest to highest round); ratios are taken round by round. "
            "A run's training time is what the program itself calls so: from the begin of the first iteration to the "
            "end of the last one, without reading the case and writing results."
        )

    def _targets(self) -> str:
        rows = [figure_row(figure) for figure in self.figures if figure.target is not None]
        return "## What is to be reached\n\n" + table(["figure", "study", "measured", "target", "reached"], rows)

    def _rest(self) -> str:
        rows = [figure_row(figure)[:3] for figure in self.figures if figure.target is None]
        return "## What else was measured\n\n" + table(["figure", "study", "measured"], rows) if rows else ""

    def _times(self) -> str:
        columns = [(name, count) for name in (OURS, PEER) for count in self.threads]
        counts = sorted({count for study in self.studies for count in study.workers})
        columns += [*((workers_name(count), 1) for count in counts), (OURS + SHORT, 1), (LOOP, 1)]
        header = ["s", *(f"{name}, {threads_text(count)}" for name, count in columns)]
        rows = [[study.name, *(self._time(study, *column) for column in columns)] for study in self.studies]
        note = f'"{SHORT.strip()}" has as few iterations as the reference loop over highspy.'
        return f"## Training time\n\n{table(header, rows)}\n\n{note}"

    def _time(self, study: Study, contender: str, threads: int) -> str:
        runs = self.results.of(study.name, contender, threads)
        return show(Spread.of([run.training_s for run in runs])) if runs else ""

    def _bounds(self) -> str:
        header = [
            "$",
            "contender",
            "iterations",
            "first lower bound",
            "final lower bound",
            "last upper bound (sampled)",
        ]
        rows = [
            bounds_row(study.name, contender, runs[0])
            for study in self.studies
            for contender in (OURS, PEER, OURS + SHORT, LOOP)
            if (runs := self.results.of(study.name, contender))
        ]
        return "## Bounds\n\n" + table(header, rows)

    def _memory(self) -> str:
        header = [
            "MB",
            "contender",
            "interpreter and libraries",
            "peak",
            "growth",
            "bytes per cut and stage",
            "of them numbers",
        ]
        rows = [
            memory_row(study.name, contender, runs)
            for study in self.studies
            for contender in (OURS, PEER)
            if (runs := self.results.of(study.name, contender))
        ]
        return "## Memory, one thread\n\n" + table(header, rows)

    def _notes(self) -> str:
        versions = sorted({f"{name}: {runs[0].version}" for (_, name, _), runs in self.results.runs.items()})
        lines = [f"- {line}" for line in versions]
        lines += [f"- Not measured: {what}" for what in self.results.not_measured]
        return "## Contenders\n\n" + "\n".join(lines)


def figure_row(figure: Figure) -> list[str]:
    """Return the cells of a row of the table of figures."""
    target = "" if figure.target is None else f"{'at most' if figure.at_most else 'at least'} {figure.target:g}"
    return [figure.title, figure.study, f"**{show(figure.value)}**", target, "yes" if figure.is_met else "no"]


def bounds_row(study: str, contender: str, run: Run) -> list[str]:
    """Return the row of bounds, with all digits that may differ."""
    numbers = (run.first_lower_bound, run.lower_bound, run.upper_bound)
    return [study, contender, str(len(run.elapsed_s)), *(f"{number:,.4f}" for number in numbers)]


def memory_row(study: str, contender: str, runs: Sequence[Run]) -> list[str]:
    """Return the cells of a row of the table of memory; bytes per cut include chunks that are not full."""
    parts = [
        [getattr(run, name) / MEGABYTE for run in runs] for name in ("baseline_bytes", "peak_bytes", "growth_bytes")
    ]
    run, per_cut = runs[0], ["", ""]
    if run.cuts:
        per_cut = [f"{run.pool_bytes / (run.cuts * run.cut_stages):.0f}", f"{8 * (1 + run.dimension)}"]
    return [study, contender, *(show(Spread.of(values)) for values in parts), *per_cut]


def show(spread: Spread) -> str:
    """Format about three digits, and the range of several values."""
    low, middle, high = (f"{value:.3g}" for value in (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"
