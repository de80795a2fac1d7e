"""conversion_manifest.json, which cobre-bridge writes into a converted case."""

from pathlib import Path
from typing import Any

from cobre.io.storage.stored_json import parse_stored

CONVERSION_MANIFEST = "conversion_manifest.json"
_FACTS = ("command", "source_dir", "bridge_version", "timestamp", "entity_counts", "diagnostics_summary")


def read_conversion(folder: Path) -> dict[str, Any] | None:
    """The origin of a case: command, deck, version, time, counts, and the number of deck files read.

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
    """The origin of a converted case, in one line."""
    model = str(facts.get("command", "")).rpartition(" ")[2].upper()
    parts = [f"converted from the {model} deck {facts.get('source_dir', '?')}".replace("the  deck", "a deck")]
    if facts.get("bridge_version"):
        parts.append(f"by cobre-bridge {facts['bridge_version']}")
    if facts.get("timestamp"):
        parts.append(f"on {str(facts['timestamp'])[:10]}")
    counts = facts.get("diagnostics_summary")
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items()) if isinstance(counts, dict) else ""
    return " ".join(parts) + (f" ({listed})" if listed else "")
