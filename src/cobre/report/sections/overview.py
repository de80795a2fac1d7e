"""The top of the page: state of the run, main results and warnings."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from cobre.core.confidence import half_width_95
from cobre.report.run_folder import RunFolder
from cobre.report.section import with_code
from cobre.report.sections.upper_bound import upper_bound_tiles
from cobre.runs.formatting import CONTROLLED, NOTHING, duration_in_words, money_in_words, percent_in_words
from cobre.runs.state import RunState


def banner(run: RunFolder) -> str:
    """A notice at the top of the page for a run that did not finish as planned; else empty."""
    if run.state is RunState.FINISHED:
        return ""
    if run.state is RunState.STOPPED:
        text = "This run was stopped before its stopping rules were met. The policy so far was kept."
        return _banner("Stopped early", text, "notice")
    done = f"Its log has {len(run.log.iterations)} iterations; the last entry is from {_moment(run.log.last_time)}."
    if run.state is RunState.RUNNING:
        return _banner(
            "Still running",
            f"This report shows the results so far. {done} Create it again later.",
            "notice",
        )
    if run.state is RunState.FAILED:
        error = str((run.log.failed or {}).get("error", "no reason given"))
        return _banner("Failed", f"This run ended with an error: {error}. {done}", "alarm")
    return _banner("Interrupted", f"This run ended before it was finished, and wrote no summary. {done}", "alarm")


def _banner(title: str, text: str, kind: str) -> str:
    return f'<div class="banner {kind}" role="status"><strong>{title}.</strong> {escape(text)}</div>'


def warnings_of(run: RunFolder) -> list[str]:
    """Warnings of the case, of the run, and of files that this report could not read, each once."""
    notes = [run.summary.get(name) for name in ("cost_note", "simulation_note")]
    first = [note for note in notes if isinstance(note, str)]
    return list(dict.fromkeys([*run.file_errors, *first, *run.study.warnings, *run.log.warnings]))


def warning_list(warnings: Sequence[str]) -> str:
    """Warnings as an HTML list, which is folded when there are more than five."""
    if not warnings:
        return '<p class="calm" id="warnings">No warnings.</p>'
    entries = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    opened = " open" if len(warnings) <= 5 else ""
    return (
        f'<details class="warnings" id="warnings"{opened}><summary>{len(warnings)} '
        f"warning{'s' if len(warnings) > 1 else ''}</summary><ul>{entries}</ul></details>"
    )


def tiles(run: RunFolder) -> str:
    """Tiles with the main figures: bounds, gap, simulated cost, effort."""
    found = [*_bound_tiles(run), *upper_bound_tiles(run), *_simulation_tiles(run), *_effort_tiles(run)]
    cards = "".join(
        f'<div class="tile"><dt>{escape(title)}</dt><dd>{escape(value)}</dd>'
        f'<dd class="small">{with_code(remark)}</dd></div>'
        for title, value, remark in found
    )
    return f'<dl class="tiles">{cards}</dl>'


def _bound_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    bounds = run.bounds
    if not len(bounds):
        return [_stored_bound_tile(run)]
    half = bounds.half_width[-1]
    spread = (
        f"± {money_in_words(half)}, 95 % confidence" if math.isfinite(half) and half > 0 else "of the last iteration"
    )
    return [
        (
            "Lower bound",
            money_in_words(bounds.lower[-1]),
            f"after {bounds.iteration[-1]} iteration{'' if bounds.iteration[-1] == 1 else 's'}",
        ),
        (bounds.upper_name.capitalize(), money_in_words(bounds.upper[-1]), spread),
        ("Gap", *_gap_tile(run)),
    ]


def _gap_tile(run: RunFolder) -> tuple[str, str]:
    """The gap, and a remark with its error and the kind of verdict."""
    bounds = run.bounds
    if bounds.gap is None:
        return NOTHING, "a sampled mean is not a bound under a risk measure; `cobre bound` computes one"
    judged = bounds.verdict(is_interrupted=bool(run.summary.get("is_interrupted")))
    kind = "" if judged is None else judged.kind.replace("_", " ")
    error = "" if bounds.gap_error is None else f"± {percent_in_words(bounds.gap_error)} "
    return percent_in_words(bounds.gap), f"{error}of the lower bound; {kind}"


def _stored_bound_tile(run: RunFolder) -> tuple[str, str, str]:
    """The tile of the lower bound for a run without training: the bound of the stored policy, if known."""
    bound, iterations = run.summary.get("lower_bound"), run.summary.get("iterations")
    if isinstance(bound, int | float):
        after = f", {iterations} iterations" if iterations else ""
        return "Lower bound", money_in_words(float(bound)), f"of the stored policy{after}"
    if run.simulated is not None:
        return "Lower bound", NOTHING, "a stored policy was simulated"
    return "Lower bound", NOTHING, "no iteration yet"


def _simulation_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    if run.simulated is None:
        return []
    costs = run.simulated.scenario_costs()
    half = half_width_95(costs.std(ddof=1), len(costs)) if len(costs) > 1 else 0.0
    tile = ("Simulated cost", money_in_words(costs.mean()), f"± {money_in_words(half)}, {len(costs)} scenarios")
    if (found := run.controlled_cost) is None:
        return [tile]
    mean, half_width = found
    return [tile, ("Controlled cost", money_in_words(mean), f"± {money_in_words(half_width)}, {CONTROLLED}")]


def _effort_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    start = run.log.started
    ranks = start.get("ranks")
    who = f"{ranks} rank{'s' if ranks != 1 else ''}, {start.get('backend')}" if ranks else ""
    seconds = run.summary.get("training_seconds")
    if not isinstance(seconds, int | float):
        seconds = run.log.iterations[-1].get("elapsed_s", 0.0) if run.log.iterations else None
    return [("Training", duration_in_words(float(seconds)), who)] if seconds else []


def subtitle(run: RunFolder) -> str:
    """The line below the title: case, time of the last event, why training stopped."""
    start = run.log.started
    finished = run.log.trained or {}
    case = start.get("case") or run.study.content.get("case")
    reason = run.summary.get("stop_reason") or finished.get("stop_reason") or ""
    was_trained = run.summary.get("stop_kind", finished.get("stop_kind")) is not None
    parts = [f"case {case}" if case else "", _moment(run.log.last_time) if run.log.last_time else ""]
    parts.append(f"stopped: {reason}" if reason and was_trained else str(reason))
    return " · ".join(part for part in parts if part)


def _moment(time: float) -> str:
    if not time:
        return "an unknown time"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
