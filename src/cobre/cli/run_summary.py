"""The summary that `cobre run` prints at the end, and its report."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from cobre.cli.standard_streams import echo, echo_label
from cobre.core.bounds import BOUND_NAMES, BoundMethod, gap_scale
from cobre.core.verdict import ComputedBound, PathCosts
from cobre.runs.formatting import CONTROLLED, size
from cobre.runs.summary import RunSummary
from cobre.wording import counted, gap_percent, money


def write_report(output: Path) -> Path | None:
    """Write report.html; a run whose report fails is still a good run."""
    from cobre.report import ReportError
    from cobre.report import write_report as write

    try:
        return write(output)
    except ReportError as error:
        echo(f"warning: no report was written: {error}", err=True)
        return None


def print_summary(summary: RunSummary, report: Path | None, stream: IO[str], *, with_bounds: bool) -> None:
    """Print the summary of a finished run as text."""
    for line in _lines(summary, with_bounds=with_bounds):
        echo(_wrapped(line, stream), file=stream)
    if summary.is_interrupted:
        echo("the policy so far was kept; run the same command with --resume to continue", file=stream)
    if summary.digest:
        echo(f"digest {summary.digest}", file=stream)
    echo(f"results in {summary.output}", file=stream)
    if report is not None:
        echo_label("report ", report, file=stream)


def _wrapped(line: str, stream: IO[str]) -> str:
    """Wrap a sentence between words on a terminal; a log keeps it whole."""
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
            half = f" +- {money(summary.simulated_half_width)}" if summary.simulated_half_width else ""
            yield (
                f"simulated {scenarios}: mean {money(summary.simulated_mean_cost)}{half} $, "
                f"standard deviation {money(summary.simulated_std_cost)} $"
            )
            if summary.simulated_controlled_mean_cost is not None:
                mean, half_width = summary.simulated_controlled_mean_cost, summary.simulated_controlled_half_width
                yield f"simulated mean, {CONTROLLED}: {money(mean)} +- {money(half_width)} $"


def _bounds(summary: RunSummary) -> Iterator[str]:
    # The mean of a stored policy's last paths is not shown as a bound: its interval was not stored.
    is_superseded = _computed(summary) is not None or not summary.digest
    costs = PathCosts(summary.upper_bound_is_exact, summary.is_risk_averse, is_superseded)
    if summary.lower_bound is not None:
        kind = (
            "" if summary.lower_bound_is_valid else " (not a bound of the cost: truncated inflows depend on their past)"
        )
        yield f"lower bound {money(summary.lower_bound)} ${kind}"
    if summary.upper_bound is not None:
        half = f" +- {money(summary.upper_bound_half_width)}" if summary.upper_bound_half_width else ""
        yield f"{costs.name} {money(summary.upper_bound)}{half} $ ({_origin(costs)})"
    if (found := _computed(summary)) is not None:
        spread = f" +- {money(found.half_width)}" if found.confidence else ""
        yield f"{BOUND_NAMES[found.method]} {money(found.value)}{spread} $"
        limit = f", {found.gap_limit}" if found.gap_limit else ""
        yield f"{'estimated ' if found.is_estimate else ''}gap {gap_percent(found.gap)} of the lower bound{limit}"
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


def _computed(summary: RunSummary) -> ComputedBound | None:
    """Return the result of the stopping rule `upper_bound`, else the sampled cost of the policy."""
    if (found := ComputedBound.of(summary.bound)) is not None or summary.upper_bound_is_exact:
        return found
    return ComputedBound.of_policy(summary.lower_bound, summary.as_dict(), is_risk_averse=summary.is_risk_averse)


def _gap_error(summary: RunSummary) -> str:
    """Describe the sampling error of a gap; a negative gap within its error is no contradiction."""
    half, lower = summary.upper_bound_half_width, summary.lower_bound
    if summary.upper_bound_is_exact or not half or lower is None or summary.policy_cost is not None:
        return ""
    return f", sampling error +- {gap_percent(half / gap_scale(lower))}"


def _origin(costs: PathCosts) -> str:
    """Describe the paths that the costs belong to."""
    if costs.is_exact:
        return "exact: all paths"
    paths = "mean of the sampled paths of the last iteration"
    return paths if costs.is_bound else f"{paths}; not a bound under a risk measure"


def _traffic(traffic: Mapping[str, int], least: int) -> Iterator[str]:
    """Yield the bytes that workers exchanged, the most first, and how much of it the method needs."""
    total = sum(traffic.values())
    if total:
        parts = sorted(traffic.items(), key=lambda part: -part[1])
        shares = ", ".join(f"{purpose} {100 * count / total:.0f} %" for purpose, count in parts if 100 * count >= total)
        yield f"workers exchanged {size(total)} (the method needs {size(least)}): {shares}"
