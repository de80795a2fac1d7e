"""The files of a case directory: which there are, their digests, and the record of a conversion."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.core.file_names import (
    BUSES_FILE,
    CONDITIONS_FILE,
    CONFIG_FILE,
    CONSTRAINT_BOUNDS_FILE,
    CONSTRAINTS_FILE,
    CONTRACTS_FILE,
    CORRELATION_FILE,
    HYDROS_FILE,
    LINES_FILE,
    LOAD_FACTORS_FILE,
    PARAMETERS_FILE,
    PENALTIES_FILE,
    POST_STUDY_FILE,
    PRODUCTION_FILE,
    SOURCE_FACTORS_FILE,
    SOURCES_FILE,
    STAGES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.io.findings import Findings, Layer, error_code, warning_code
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.io.storage.confined import MAX_TABLE_BYTES, open_untrusted
from cobre.io.storage.stored_json import parse_stored

NO_DIRECTORY = error_code("no-case-directory", Layer.STRUCTURE, "{value}", expected="the path of a case directory")
MOVED_FILE = error_code("moved-file", Layer.STRUCTURE, "this file is no longer read", remedy="{advice}")
UNKNOWN_FILE = warning_code("unknown-file", Layer.STRUCTURE, "is not a file of the case format and is not read")

REQUIRED_JSON = (
    CONFIG_FILE,
    STAGES_FILE,
    CONDITIONS_FILE,
    PENALTIES_FILE,
    BUSES_FILE,
    LINES_FILE,
    HYDROS_FILE,
    THERMALS_FILE,
)

OPTIONAL_JSON = (
    POST_STUDY_FILE,
    SOURCES_FILE,
    STATIONS_FILE,
    CONTRACTS_FILE,
    PRODUCTION_FILE,
    LOAD_FACTORS_FILE,
    SOURCE_FACTORS_FILE,
    CORRELATION_FILE,
    PARAMETERS_FILE,
    CONSTRAINTS_FILE,
)


MOVED: Mapping[str, str] = {
    "constraints/exchange_factors.json": (
        "give direct_mw and reverse_mw by block in constraints/line_bounds.parquet (capacity times factor)"
    ),
    "system/scalar_parameters.json": "move it, unchanged, to constraints/generic_parameters.json",
}

CONVERSION_MANIFEST = "conversion_manifest.json"
FOLDERS = ("system", "scenarios", "constraints")
NOT_INPUT = (CONVERSION_MANIFEST,)  # records the case's origin; no result depends on it


def check_files(folder: Path, findings: Findings) -> bool:
    """Return whether the path is a directory; moved and unknown files are reported."""
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        findings.add(NO_DIRECTORY, str(folder), value=what)
        return False
    for name, remedy in MOVED.items():
        if (folder / name).exists():
            findings.add(MOVED_FILE, name, advice=remedy)
    _warn_of_unknown(folder, findings)
    return True


def known_files() -> frozenset[str]:
    """Return every file of the case format, by its path inside the case."""
    tables = [*SCENARIO_TABLES.values(), *OVERRIDE_TABLES.values(), *PRODUCTION_TABLES.values()]
    parquet = [table.file for table in tables]
    return frozenset([*REQUIRED_JSON, *OPTIONAL_JSON, CONSTRAINT_BOUNDS_FILE, *MOVED, *parquet])


def _warn_of_unknown(folder: Path, findings: Findings) -> None:
    """Warn of unknown files in the folders of inputs; other folders are left to the user."""
    names = known_files()
    for directory in (folder, *(folder / name for name in FOLDERS)):
        for path in (
            sorted(directory.glob("*.json")) + sorted(directory.glob("*.parquet")) if directory.is_dir() else ()
        ):
            name = path.relative_to(folder).as_posix()
            if name not in names and name not in NOT_INPUT:
                findings.add(UNKNOWN_FILE, name)


# Digests of the files of a case directory, by which changed files are found later.


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every existing file of the case format, by its path inside the case."""
    digests = {name: _digest(folder / name) for name in sorted(known_files())}
    return {name: digest for name, digest in digests.items() if digest}


def differing_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return files that differ, or exist in only one of the two."""
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; empty if it is missing or cannot be read."""
    try:
        with os.fdopen(open_untrusted(path, MAX_TABLE_BYTES), "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


# The record of a conversion, which the bridges write into a converted case.

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
    record = {name: content[name] for name in _FACTS if content.get(name) is not None}
    return record | ({"input_files": len(files)} if isinstance(files, list) else {})


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
