"""The section on reproducing the run: settings, versions, digests."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from cobre.report.data_table import DataTable, TableColumn
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.runs.formatting import NOTHING

INTRO = "Settings, versions and digests needed to repeat this run and check that its results are the same."


def provenance(run: RunFolder) -> Section:
    """Digests, versions, start of the run, origin of the case and configuration, as far as they are known."""
    parts: list[DataTable | str] = [_digests(run)]
    versions = versions_of(run)
    if versions:
        rows = sorted((name, str(found)) for name, found in versions.items())
        parts.append(DataTable("versions", "Versions", (TableColumn("software"), TableColumn("version")), rows))
    start = run.log.started
    if start:
        told = {name: value for name, value in start.items() if name not in ("event", "time") and value != ""}
        rows = [(name.replace("_", " "), _written(value)) for name, value in told.items()]
        parts.append(DataTable("start", "Start", (TableColumn("fact"), TableColumn("value")), rows))
    origin = list(flattened(run.study.content.get("conversion", {})))
    if origin:
        rows = [(name.replace("_", " ").replace(".", ": "), value) for name, value in origin]
        parts.append(
            DataTable("conversion", "Converted from a deck", (TableColumn("fact"), TableColumn("value")), rows)
        )
    method = list(_method(run.study.content.get("method")))
    if method:
        parts.append(DataTable("method", "Method", (TableColumn("fact"), TableColumn("value")), method))
    changed = list(flattened(run.study.content.get("config_overrides", {})))
    if changed:
        columns = (TableColumn("setting"), TableColumn("value"))
        parts.append(DataTable("overrides", "Settings changed for this run", columns, changed))
    settings = list(flattened(run.study.content.get("config", {})))
    if settings:
        parts.append(
            _folded(DataTable("config", "Configuration", (TableColumn("setting"), TableColumn("value")), settings))
        )
    return Section("provenance", "Reproduce", parts, INTRO)


def _method(facts: object) -> Iterator[tuple[str, str]]:
    """Openings, risk measure, discount, passes and seeds, with the stages that a value holds for."""
    for name, value in facts.items() if isinstance(facts, dict) else ():
        label = name.replace("_", " ")
        if isinstance(value, list):
            for part in value:
                if isinstance(part, dict):
                    yield f"{label}, {_stages(part)}", _written_value(part.get("value"))
        elif value is not None:
            yield label, _written(value)


def _stages(part: Mapping[str, Any]) -> str:
    first, last = part.get("first_stage"), part.get("last_stage")
    return f"stage {first}" if first == last else f"stages {first} to {last}"


def _written_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_written(entry)}" for name, entry in value.items())
    return _written(value)


def versions_of(run: RunFolder) -> Mapping[str, Any]:
    """Library versions from study.json, else from the manifests of the tables."""
    named = run.study.content.get("versions")
    if isinstance(named, dict):
        return named
    return next((found["software"] for found in run.manifests.values() if "software" in found), {})


def digests_of(run: RunFolder) -> dict[str, str]:
    """Digests of policy with bounds, and of simulated numbers; equal digests mean equal bits."""
    finished = run.log.trained or {}
    simulated = run.log.simulated or {}
    found = {
        "training": run.summary.get("digest") or _stated(run, "training") or finished.get("digest"),
        "simulation": run.summary.get("simulation_digest") or _stated(run, "simulation") or simulated.get("digest"),
    }
    return {name: str(digest) for name, digest in found.items() if digest}


def _stated(run: RunFolder, results: str) -> Any:
    return run.manifests[results].get("run", {}).get("digest")


def _digests(run: RunFolder) -> str:
    digests = digests_of(run)
    rows = "".join(f"<dt>{name}</dt><dd><code>{escape(digest)}</code></dd>" for name, digest in digests.items())
    body = f"<dl>{rows}</dl>" if rows else "<p>Not known before training is over.</p>"
    note = "The same case and versions give the same digests, with any number of ranks and threads."
    return f'<section class="card wide" id="digests"><h3>Digests</h3>{body}<p class="note">{note}</p></section>'


def flattened(settings: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs of a dotted name and a text."""
    if isinstance(settings, dict) and settings:
        for name, value in settings.items():
            if name == "type" and str(value).endswith("Config"):
                continue  # redundant: the key already names the section
            yield from flattened(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(settings, list) and any(isinstance(entry, dict) for entry in settings):
        for index, value in enumerate(settings):
            yield from flattened(value, f"{prefix}[{index}]")
    elif prefix:
        yield prefix, _written(settings)


def _written(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_written, value)) or NOTHING
    if value is None or value == {}:
        return NOTHING
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folded(table: DataTable) -> str:
    """A table in a folded element: it is long and seldom read."""
    summary = f"{escape(table.title)} ({len(table.rows)} settings)"
    return f'<details class="wide"><summary>{summary}</summary>{table.html()}</details>'
