"""conversion_manifest.json, which the bridges write into a converted case."""

from pathlib import Path
from typing import Any

from cobre.io.storage.stored_json import parse_stored

CONVERSION_MANIFEST = "conversion_manifest.json"
_FACTS = (
    "command",
    "source_dir",
    "bridge",
    "bridge_version",
    "timestamp",
    "entity_counts",
    "diagnostics_summary",
    "repairs",
)


def read_conversion(folder: Path) -> dict[str, Any] | None:
    """Return the origin of a case: command, deck, version, time, counts, and the number of deck files read.

    None without the file or if it is malformed, since it is only informative.
    """
    try:
        content = parse_stored((folder / CONVERSION_MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict):
        return None
    files = content.get("input_files")
    found = {name: content[name] for name in _FACTS if content.get(name) is not None}
    return found | ({"input_files": len(files)} if isinstance(files, list) else {})


def conversion_in_words(facts: dict[str, Any]) -> str:
    """Return the origin of a converted case, in one line."""
    model = str(facts.get("command", "")).rpartition(" ")[2].upper()
    parts = [f"converted from the {model} deck {facts.get('source_dir', '?')}".replace("the  deck", "a deck")]
    if facts.get("bridge_version"):
        parts.append(f"by {facts.get('bridge') or _bridge(str(facts['bridge_version']))} {facts['bridge_version']}")
    if facts.get("timestamp"):
        parts.append(f"on {str(facts['timestamp'])[:10]}")
    if isinstance(repairs := facts.get("repairs"), list):
        parts.append("after the repairs " + ", ".join(str(repair.get("name")) for repair in repairs))
    counts = facts.get("diagnostics_summary")
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items()) if isinstance(counts, dict) else ""
    return " ".join(parts) + (f" ({listed})" if listed else "")


def _bridge(version: str) -> str:
    """Return the program of a version: the bridge was renamed with 0.19, and the manifest does not name it."""
    return "cobre-bridge" if version.startswith("0.") and version < "0.19" else "novomodelo-bridge"
