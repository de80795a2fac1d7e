"""Output of `cobre run`: a live table on a terminal, lines in a log, or warnings only; and the summary at the end."""

import os
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from cobre.cli.standard_streams import echo, echo_label
from cobre.core.bounds import BOUND_NAMES, BoundMethod, gap_scale
from cobre.core.verdict import ComputedBound, PathCosts
from cobre.runs.labels import CONTROLLED
from cobre.runs.summary import RunSummary
from cobre.text import counted, duration_compact, gap_percent, money, money_compact, rate, size

if TYPE_CHECKING:
    from cobre.runs.events import Event


def header(upper_bound: str) -> str:
    """Return the headings above the lines of iterations."""
    return f"{'iteration':>9}  {'lower bound $':>20}  {upper_bound:>24}  {'+- 95 %':>15}  {'cuts':>7}  {'s':>8}"


_WIDTH = len(header(""))
_FIRST_LINE_S = 10.0
_LINE_INTERVAL_S = 60.0
_STEP_INTERVAL_S = 10.0
_LONG_STUDY_S = 600.0
_SHOWN_EARLIER_ITERATIONS = 20


class ProgressDisplay(Protocol):
    """A display of the events of a run."""

    has_events: bool
    """Whether this process has received events of the run; only that of rank 0 does."""
    has_shown_bounds: bool
    """Whether the last bounds are on the screen already."""

    def expect(self, case: str) -> None:
        """Announce the case before workers are started: the first event takes a second or two."""

    def emit(self, event: "Event") -> None:
        """Show one event of the run."""

    def close(self) -> None:
        """End the display after the last event."""


def choose_progress(*, plain: bool, quiet: bool, stream: IO[str] | None = None) -> ProgressDisplay:
    """Return a live table if the stream can show one, else lines; with `--quiet`, warnings only."""
    stream = stream or sys.stdout
    if quiet:
        return QuietProgress()
    if plain or not can_draw(stream):
        return LineProgress(stream)
    from cobre.cli.run_table import LiveProgress

    return LiveProgress(stream)


def can_draw(stream: IO[str]) -> bool:
    """Return whether a stream can show a live table: a terminal with cursor control and UTF-8."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    return (getattr(stream, "encoding", "") or "").lower().replace("-", "") == "utf8"


class QuietProgress:
    """A display of warnings only, on standard error."""

    has_shown_bounds = False

    def __init__(self) -> None:
        self.has_events = False

    def expect(self, case: str) -> None:
        """Do nothing: the first event reports the start of the run."""

    def emit(self, event: "Event") -> None:
        """Print the event if it is a warning."""
        self.has_events = True
        if event["event"] == "warning":
            echo(f"warning: {event['message']}", err=True)

    def close(self) -> None:
        """Do nothing: there is no display to close."""


class LineProgress:
    """A display with one line for each iteration; the lines are shorter on a narrow terminal."""

    has_shown_bounds = False

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        from cobre.runs.view import RunView  # its NumPy would delay every other command

        self._view = RunView()
        self._is_narrow = self._stream.isatty() and shutil.get_terminal_size().columns < _WIDTH
        self.has_events = False
        self._shown_iteration = 0
        self._next_line_s = _FIRST_LINE_S
        self._shown_step = ""
        self._next_step_s = 0.0

    def expect(self, case: str) -> None:
        """Do nothing: the first event reports the start of the run."""

    def emit(self, event: "Event") -> None:
        """Print the line of an event; events without one are ignored."""
        self.has_events = True
        self._view.take(event)
        match event["event"]:
            case "warning":
                echo(f"warning: {event['message']}", err=True)
            case "run_started":
                self._print(f"cobre {event['version']}: {event['case']}, {workers_in_words(event)}")
                if reason := event.get("split_reason"):
                    self._print(f"  {reason}")
            case "phase":
                self._announce(event)
            case "resumed":
                self._show_earlier(event)
            case "progress":
                self._print_progress(event)
            case "preparation":
                self._print_preparation(event)
            case "estimate":
                self._print(f"  {self._view.estimate_in_words}{trial_advice(event)}")
            case "iteration":
                self._print(_short_line(event, self._view.gap) if self._is_narrow else _line(event))

    def close(self) -> None:
        """Do nothing: there is no display to close."""

    def _announce(self, event: "Event") -> None:
        self._print(f"{event['name']} ...")
        if event["name"] == "training" and not self._is_narrow:
            costs = self._view.path_costs
            heading = f"{costs.name} $ ({costs.label if costs.is_bound else 'not a bound'})"
            self._print(header("cost of the policy $" if self._view.has_policy_cost else heading))

    def _show_earlier(self, event: "Event") -> None:
        """Print the last iterations before a resume, and where training continues."""
        for iteration in self._view.iterations[-_SHOWN_EARLIER_ITERATIONS:]:
            self._print(_short_line(iteration, iteration.get("policy_gap")) if self._is_narrow else _line(iteration))
        self._print(f"  resumed after iteration {event['iteration']}")

    def _print_preparation(self, event: "Event") -> None:
        """Print a line for each step, and another one every ten seconds of a long step."""
        if event["step"] == self._shown_step and event["elapsed_s"] < self._next_step_s:
            return
        self._shown_step, self._next_step_s = event["step"], event["elapsed_s"] + _STEP_INTERVAL_S
        self._print(f"  {self._view.preparation_in_words} ({duration_compact(event['elapsed_s'])})")

    def _print_progress(self, event: "Event") -> None:
        """Print a line after ten seconds of an iteration and then every minute, so that logs stay short."""
        if event["iteration"] != self._shown_iteration:
            self._shown_iteration, self._next_line_s = event["iteration"], _FIRST_LINE_S
        if event["elapsed_s"] < self._next_line_s:
            return
        self._next_line_s = event["elapsed_s"] + _LINE_INTERVAL_S
        parts = [self._view.progress_in_words, rate(event["solves_per_s"], "LPs")]
        if (seconds_left := event.get("seconds_left")) is not None:
            parts.append(f"{duration_compact(seconds_left)} left")
        if (study_seconds_left := self._view.seconds_left) is not None and self._view.iteration_limit != 1:
            parts.append(f"training {duration_compact(study_seconds_left)}")
        self._print(f"  {', '.join(parts)}")

    def _print(self, text: str) -> None:
        echo(text, file=self._stream)


def trial_advice(event: "Event") -> str:
    """Return how to shorten a study that is estimated to take more than ten minutes; else an empty text."""
    if (event.get("seconds") or 0.0) < _LONG_STUDY_S:
        return ""
    return "; for a trial of minutes add --iterations 2 --forward-passes 2 --scenarios 10"


def workers_in_words(event: "Event") -> str:
    """Describe the processes and threads of a run, from its `run_started` event."""
    threads = f"{event['threads']} thread{'s' * (event['threads'] > 1)}"
    return f"{event['ranks']} workers ({event['backend']}), {threads} each" if event["ranks"] > 1 else threads


def _line(event: "Event") -> str:
    """Format an iteration, with the cost of the policy if it is known, else the mean of the paths."""
    cost, half_width = event["upper_bound"], event["half_width"]
    if event.get("policy_cost_paths"):
        cost, half_width = event["policy_cost"], event["policy_cost_half_width"]
    spread = "-" if half_width is None else money(half_width, 0)
    return (
        f"{event['iteration']:>9}  {money(event['lower_bound']):>20}  {money(cost):>24}  "
        f"{spread:>15}  {event['cuts']:>7}  {event['elapsed_s']:>8.2f}"
    )


def _short_line(event: "Event", gap: float | None) -> str:
    line = f"{event['iteration']:>5} {money_compact(event['lower_bound']):>13}"
    return line if gap is None else f"{line} {gap_percent(gap):>9}"


class SignalWatcher:
    """A detector of SIGINT and SIGTERM that does not change their handlers, for displays of a run that is stopping.

    Python writes the numbers of signals into its pipe.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous: int | None = None
        if threading.current_thread() is threading.main_thread():  # elsewhere Python raises
            self._previous = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._received = False

    def has_arrived(self) -> bool:
        """Return whether SIGINT or SIGTERM has arrived."""
        try:
            numbers = os.read(self._reader, 4096)
        except BlockingIOError:
            numbers = b""
        self._received |= any(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)
        return self._received

    def close(self) -> None:
        """Close the pipe, and restore the previous wakeup descriptor."""
        if self._previous is not None:
            signal.set_wakeup_fd(self._previous)
        os.close(self._reader)
        os.close(self._writer)


def report_or_warning(output: Path) -> Path | None:
    """Write report.html and return its path; if that fails, print a warning and return None."""
    from cobre.report.document import write_report
    from cobre.report.run_folder import ReportError

    try:
        return write_report(output)
    except ReportError as error:
        echo(f"warning: no report was written: {error}", err=True)
        return None


def print_summary(summary: RunSummary, report: Path | None, stream: IO[str], *, with_bounds: bool) -> None:
    """Print the summary of a finished run as text."""
    for line in _lines(summary, with_bounds=with_bounds):
        echo(_wrap(line, stream), file=stream)
    if summary.is_interrupted:
        echo("the policy so far was kept; run the same command with --resume to continue", file=stream)
    if summary.digest:
        echo(f"digest {summary.digest}", file=stream)
    echo(f"results in {summary.output}", file=stream)
    if report is not None:
        echo_label("report ", report, file=stream)


def _wrap(line: str, stream: IO[str]) -> str:
    """Wrap a sentence on a terminal; in a log it stays on one line."""
    if not stream.isatty():
        return line
    width = max(20, shutil.get_terminal_size().columns)
    return textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False)


def _lines(summary: RunSummary, *, with_bounds: bool) -> Iterator[str]:
    if summary.digest:
        yield f"stopped after {counted(summary.iterations, 'iteration')}: {summary.stop_reason}"
    else:
        yield f"{summary.stop_reason}, of {counted(summary.iterations, 'iteration')}"
    if summary.verdict is not None:
        yield summary.verdict
    for note in (summary.cost_note, summary.simulation_note):
        if note is not None:
            yield f"note: {note}"
    if with_bounds:
        yield from _bounds(summary)
        if summary.simulated_scenarios is not None:
            scenarios = counted(summary.simulated_scenarios, "scenario")
            interval = f" +- {money(summary.simulated_half_width)}" if summary.simulated_half_width else ""
            yield (
                f"simulated {scenarios}: mean {money(summary.simulated_mean_cost)}{interval} $, "
                f"standard deviation {money(summary.simulated_std_cost)} $"
            )
            if summary.simulated_controlled_mean_cost is not None:
                mean, half_width = summary.simulated_controlled_mean_cost, summary.simulated_controlled_half_width
                yield f"simulated mean, {CONTROLLED}: {money(mean)} +- {money(half_width)} $"


def _bounds(summary: RunSummary) -> Iterator[str]:
    # The mean of a stored policy's last paths is not shown as a bound: its interval was not stored.
    is_superseded = _computed_bound(summary) is not None or not summary.digest
    costs = PathCosts(summary.upper_bound_is_exact, summary.is_risk_averse, is_superseded)
    if summary.lower_bound is not None:
        caveat = (
            "" if summary.lower_bound_is_valid else " (not a bound of the cost: truncated inflows depend on their past)"
        )
        yield f"lower bound {money(summary.lower_bound)} ${caveat}"
    if summary.upper_bound is not None:
        interval = f" +- {money(summary.upper_bound_half_width)}" if summary.upper_bound_half_width else ""
        yield f"{costs.name} {money(summary.upper_bound)}{interval} $ ({_describe_paths(costs)})"
    if (bound := _computed_bound(summary)) is not None:
        spread = f" +- {money(bound.half_width)}" if bound.confidence else ""
        yield f"{BOUND_NAMES[bound.method]} {money(bound.value)}{spread} $"
        limit = f", {bound.gap_limit}" if bound.gap_limit else ""
        yield f"{'estimated ' if bound.is_estimate else ''}gap {gap_percent(bound.gap)} of the lower bound{limit}"
    elif summary.gap is not None and costs.is_bound:
        if summary.policy_cost is not None and summary.policy_cost_paths:
            paths = counted(summary.policy_cost_paths, "path")
            name = BOUND_NAMES[BoundMethod.SAMPLED]
            yield f"{name} {money(summary.policy_cost)} $ (from {paths}, without a confidence interval)"
        yield f"gap {gap_percent(summary.gap)} of the lower bound{_gap_error(summary)}"
    if summary.digest:
        yield f"{summary.training_seconds:.2f} s of training"
    if len(summary.workers) > 1:
        waited = [100 * report.waiting_s / max(report.wall_s, 1e-9) for report in summary.workers]
        yield f"{len(waited)} workers on {summary.workers[0].backend}, waiting at most {max(waited):.1f} % of the time"
        yield f"memory shared by workers of a node {size(summary.shared_bytes)}, saving {size(summary.saved_bytes)}"
        yield from _traffic(summary.traffic_bytes, summary.traffic_least_bytes)


def _computed_bound(summary: RunSummary) -> ComputedBound | None:
    """Return the result of the stopping rule `upper_bound`, else the sampled cost of the policy."""
    return ComputedBound.of_run(
        summary.lower_bound,
        summary.as_dict(),
        is_exact=summary.upper_bound_is_exact,
        is_risk_averse=summary.is_risk_averse,
    )


def _gap_error(summary: RunSummary) -> str:
    """Describe the sampling error of a gap, which may be negative within this error."""
    half, lower = summary.upper_bound_half_width, summary.lower_bound
    if summary.upper_bound_is_exact or not half or lower is None or summary.policy_cost is not None:
        return ""
    return f", sampling error +- {gap_percent(half / gap_scale(lower))}"


def _describe_paths(costs: PathCosts) -> str:
    """Describe the paths over which the cost is a mean."""
    if costs.is_exact:
        return "exact: all paths"
    paths = "mean of the sampled paths of the last iteration"
    return paths if costs.is_bound else f"{paths}; not a bound under a risk measure"


def _traffic(traffic: Mapping[str, int], needed_bytes: int) -> Iterator[str]:
    """Yield a line on the bytes that workers exchanged: total, minimum that the method needs, shares by purpose."""
    total = sum(traffic.values())
    if total:
        shares = {purpose: 100 * count / total for purpose, count in traffic.items()}
        largest_first = sorted(shares.items(), key=lambda entry: -entry[1])
        listed = ", ".join(f"{purpose} {share:.0f} %" for purpose, share in largest_first if share >= 1)
        yield f"workers exchanged {size(total)} (the method needs {size(needed_bytes)}): {listed}"
