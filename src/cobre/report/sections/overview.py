"""The top of the page (state of the run, main results, warnings), and the section on reproducing the run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from cobre.core.confidence import half_width_95
from cobre.report.run_folder import RunFolder
from cobre.report.section import DataTable, Section, TableColumn, with_code
from cobre.runs.labels import CONTROLLED
from cobre.runs.run_state import RunState
from cobre.text import NO_VALUE, duration_spelled, gap_percent, money_spelled

_BOUND_TITLES = {
    "enumeration": ("Upper bound", "exact cost of the policy"),
    "inner": ("Upper bound", "of the optimum, by inner approximation"),
    "sampled": ("Cost of the policy", "estimated"),
}


def upper_bound_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    """Return the tile of the upper bound or policy cost from `cobre bound` or a stopping rule; empty without one."""
    bound = run.bounds.computed
    if bound is None:
        cost, remark = run.bounds.single_path_cost, "from one path: no confidence interval"
        return [] if cost is None else [(_BOUND_TITLES["sampled"][0], money_spelled(cost), remark)]
    title, kind = _BOUND_TITLES[bound.method]
    if bound.confidence:
        kind = f"± {money_spelled(bound.half_width)}, {100 * bound.confidence:g} % confidence; {kind}"
    kind += ", from below: not a bound" if bound.is_estimate else ""
    return [(title, money_spelled(bound.value), kind)]


def banner(run: RunFolder) -> str:
    """Return a banner for a run that is not finished or did not finish as planned; else an empty text."""
    if run.state is RunState.FINISHED:
        return ""
    if run.state is RunState.STOPPED:
        text = "This run was stopped before its stopping rules were met. The policy so far was kept."
        return _banner("Stopped early", text, "notice")
    progress = (
        f"Its log has {len(run.log.iterations)} iterations; the last entry is from {_utc_text(run.log.last_time)}."
    )
    if run.state is RunState.RUNNING:
        return _banner(
            "Still running",
            f"This report shows the results so far. {progress} Create it again later.",
            "notice",
        )
    if run.state is RunState.FAILED:
        error = str((run.log.failed or {}).get("error", "no reason given"))
        return _banner("Failed", f"This run ended with an error: {error}. {progress}", "alarm")
    return _banner("Interrupted", f"This run ended before it was finished, and wrote no summary. {progress}", "alarm")


def _banner(title: str, text: str, kind: str) -> str:
    return f'<div class="banner {kind}" role="status"><strong>{title}.</strong> {escape(text)}</div>'


def warnings_of(run: RunFolder) -> list[str]:
    """Return warnings of the case, of the run, and of files that cannot be read, each once."""
    notes = [run.summary.get(name) for name in ("cost_note", "simulation_note")]
    first = [note for note in notes if isinstance(note, str)]
    return list(dict.fromkeys([*run.file_errors, *first, *run.study.warnings, *run.log.warnings]))


def warning_list(warnings: Sequence[str]) -> str:
    """Return warnings as an HTML list, which is folded when there are more than five."""
    if not warnings:
        return '<p class="calm" id="warnings">No warnings.</p>'
    entries = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    opened = " open" if len(warnings) <= 5 else ""
    return (
        f'<details class="warnings" id="warnings"{opened}><summary>{len(warnings)} '
        f"warning{'s' if len(warnings) > 1 else ''}</summary><ul>{entries}</ul></details>"
    )


def tiles(run: RunFolder) -> str:
    """Return tiles with the main figures: bounds, gap, simulated cost, effort."""
    lower, *others = _bound_tiles(run)
    all_tiles = [lower, *upper_bound_tiles(run), *others, *_simulation_tiles(run), *_effort_tiles(run)]
    cards = "".join(
        f'<div class="tile"><dt>{escape(title)}</dt><dd>{escape(value)}</dd>'
        f'<dd class="small">{with_code(remark)}</dd></div>'
        for title, value, remark in all_tiles
    )
    return f'<dl class="tiles">{cards}</dl>'


def _bound_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    bounds = run.bounds
    if not len(bounds):
        return [_stored_bound_tile(run)]
    half_width = bounds.half_width[-1]
    spread = (
        f"± {money_spelled(half_width)}, 95 % confidence"
        if math.isfinite(half_width) and half_width > 0
        else "of the last iteration"
    )
    return [
        (
            "Lower bound",
            money_spelled(bounds.lower[-1]),
            f"after {bounds.iteration[-1]} iteration{'' if bounds.iteration[-1] == 1 else 's'}",
        ),
        ("Gap", *_gap_tile(run)),
        (bounds.upper_name.capitalize(), money_spelled(bounds.upper[-1]), spread),
    ]


def _gap_tile(run: RunFolder) -> tuple[str, str]:
    """Return the gap, and a remark with its error and the kind of verdict."""
    bounds = run.bounds
    if bounds.gap is None:
        return NO_VALUE, "a sampled mean is not a bound under a risk measure; `cobre bound` computes one"
    judged = bounds.verdict(is_interrupted=bool(run.summary.get("is_interrupted")))
    kind = "" if judged is None else judged.kind.replace("_", " ")
    error = "" if bounds.gap_error is None else f"± {gap_percent(bounds.gap_error)} "
    limit = "" if bounds.computed is None or not bounds.computed.gap_limit else f", {bounds.computed.gap_limit}"
    return gap_percent(bounds.gap), f"{error}of the lower bound{limit}; {kind}"


def _stored_bound_tile(run: RunFolder) -> tuple[str, str, str]:
    """Return the tile of the lower bound for a run without training: the bound of the stored policy, if known."""
    bound, iterations = run.summary.get("lower_bound"), run.summary.get("iterations")
    if isinstance(bound, int | float):
        after = f", {iterations} iterations" if iterations else ""
        return "Lower bound", money_spelled(float(bound)), f"of the stored policy{after}"
    if run.simulated is not None:
        return "Lower bound", NO_VALUE, "a stored policy was simulated"
    return "Lower bound", NO_VALUE, "no iteration yet"


def _simulation_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    if run.simulated is None:
        return []
    costs = run.simulated.scenario_costs()
    half_width = half_width_95(costs.std(ddof=1), len(costs)) if len(costs) > 1 else 0.0
    tile = ("Simulated cost", money_spelled(costs.mean()), f"± {money_spelled(half_width)}, {len(costs)} scenarios")
    if (controlled := run.controlled_cost) is None:
        return [tile]
    mean, half_width = controlled
    return [tile, ("Controlled cost", money_spelled(mean), f"± {money_spelled(half_width)}, {CONTROLLED}")]


def _effort_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    start = run.log.started
    ranks = start.get("ranks")
    ranks_text = f"{ranks} rank{'s' if ranks != 1 else ''}, {start.get('backend')}" if ranks else ""
    seconds = run.summary.get("training_seconds")
    if not isinstance(seconds, int | float):
        seconds = run.log.iterations[-1].get("elapsed_s", 0.0) if run.log.iterations else None
    return [("Training", duration_spelled(float(seconds)), ranks_text)] if seconds else []


def subtitle(run: RunFolder) -> str:
    """Return the line below the title: case, time of the last event, why training stopped."""
    start = run.log.started
    finished = run.log.trained or {}
    case = start.get("case") or run.study.content.get("case")
    reason = run.summary.get("stop_reason") or finished.get("stop_reason") or ""
    was_trained = run.summary.get("stop_kind", finished.get("stop_kind")) is not None
    parts = [f"case {case}" if case else "", _utc_text(run.log.last_time) if run.log.last_time else ""]
    parts.append(f"stopped: {reason}" if reason and was_trained else str(reason))
    return " · ".join(part for part in parts if part)


def _utc_text(time: float) -> str:
    if not time:
        return "an unknown time"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# The section on reproducing the run: settings, versions, digests.

INTRO = "Settings, versions and digests needed to repeat this run and check that its results are the same."


def provenance(run: RunFolder) -> Section:
    """Return tables of digests, versions, start, origin of the case and configuration, as far as they are known."""
    parts: list[DataTable | str] = [_digests(run)]
    versions = versions_of(run)
    if versions:
        rows = sorted((name, str(found)) for name, found in versions.items())
        parts.append(DataTable("versions", "Versions", (TableColumn("software"), TableColumn("version")), rows))
    start = run.log.started
    if start:
        properties = {name: value for name, value in start.items() if name not in ("event", "time") and value != ""}
        rows = [(name.replace("_", " "), _value_text(value)) for name, value in properties.items()]
        parts.append(DataTable("start", "Start", (TableColumn("fact"), TableColumn("value")), rows))
    origin = list(flatten(run.study.content.get("conversion", {})))
    if origin:
        rows = [(name.replace("_", " ").replace(".", ": "), value) for name, value in origin]
        parts.append(
            DataTable("conversion", "Converted from a deck", (TableColumn("fact"), TableColumn("value")), rows)
        )
    method = list(_method(run.study.content.get("method")))
    if method:
        parts.append(DataTable("method", "Method", (TableColumn("fact"), TableColumn("value")), method))
    changed = list(flatten(run.study.content.get("config_overrides", {})))
    if changed:
        columns = (TableColumn("setting"), TableColumn("value"))
        parts.append(DataTable("overrides", "Settings changed for this run", columns, changed))
    settings = list(flatten(run.study.content.get("config", {})))
    if settings:
        parts.append(
            _folded(DataTable("config", "Configuration", (TableColumn("setting"), TableColumn("value")), settings))
        )
    return Section("provenance", "Reproduce", parts, INTRO)


def _method(settings: object) -> Iterator[tuple[str, str]]:
    """Yield openings, risk measure, discount, passes and seeds, with the stages that a value holds for."""
    for name, value in settings.items() if isinstance(settings, dict) else ():
        label = name.replace("_", " ")
        if isinstance(value, list):
            for part in value:
                if isinstance(part, dict):
                    yield f"{label}, {_stages(part)}", _setting_text(part.get("value"))
        elif value is not None:
            yield label, _value_text(value)


def _stages(part: Mapping[str, Any]) -> str:
    first, last = part.get("first_stage"), part.get("last_stage")
    return f"stage {first}" if first == last else f"stages {first} to {last}"


def _setting_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value_text(entry)}" for name, entry in value.items())
    return _value_text(value)


def versions_of(run: RunFolder) -> Mapping[str, Any]:
    """Return library versions from study.json, else from the manifests of the tables."""
    versions = run.study.content.get("versions")
    if isinstance(versions, dict):
        return versions
    return next((manifest["software"] for manifest in run.manifests.values() if "software" in manifest), {})


def digests_of(run: RunFolder) -> dict[str, str]:
    """Return digests of policy with bounds, and of simulated numbers; equal digests mean equal bits."""
    finished = run.log.trained or {}
    simulated = run.log.simulated or {}
    digests = {
        "training": run.summary.get("digest") or _manifest_digest(run, "training") or finished.get("digest"),
        "simulation": run.summary.get("simulation_digest")
        or _manifest_digest(run, "simulation")
        or simulated.get("digest"),
    }
    return {name: str(digest) for name, digest in digests.items() if digest}


def _manifest_digest(run: RunFolder, results: str) -> Any:
    return run.manifests[results].get("run", {}).get("digest")


def _digests(run: RunFolder) -> str:
    digests = digests_of(run)
    rows = "".join(f"<dt>{name}</dt><dd><code>{escape(digest)}</code></dd>" for name, digest in digests.items())
    body = f"<dl>{rows}</dl>" if rows else "<p>Not known before training is over.</p>"
    note = "The same case and versions give the same digests, with any number of ranks and threads."
    return f'<section class="card wide" id="digests"><h3>Digests</h3>{body}<p class="note">{note}</p></section>'


def flatten(settings: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as pairs of a dotted name and a text."""
    if isinstance(settings, dict) and settings:
        for name, value in settings.items():
            if name == "type" and str(value).endswith("Config"):
                continue  # redundant: the key already names the section
            yield from flatten(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(settings, list) and any(isinstance(entry, dict) for entry in settings):
        for index, value in enumerate(settings):
            yield from flatten(value, f"{prefix}[{index}]")
    elif prefix:
        yield prefix, _value_text(settings)


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value_text, value)) or NO_VALUE
    if value is None or value == {}:
        return NO_VALUE
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folded(table: DataTable) -> str:
    """Render a table in a folded element: it is long and seldom read."""
    summary = f"{escape(table.title)} ({len(table.rows)} settings)"
    return f'<details class="wide"><summary>{summary}</summary>{table.html()}</details>'
