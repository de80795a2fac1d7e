"""manifest.json: the tables of a results directory, and the software that wrote them. It is written last."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from cobre import __version__
from cobre.errors import CobreError
from cobre.io.file_names import MANIFEST_FILE
from cobre.io.storage.stored_json import read_stored_object
from cobre.io.storage.untrusted_file import MAX_TABLE_BYTES, open_untrusted

FORMAT_VERSION = 1
LIBRARIES = ("numpy", "pyarrow", "highspy")


class ResultsError(CobreError, OSError):
    """A directory without complete results; the message says what is missing or damaged."""


def describe_table(path: Path, file: str) -> dict[str, Any]:
    """The manifest entry of the table in `path`; `file` is its name in the results directory."""
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(path) as table:
        rows, schema = table.metadata.num_rows, table.schema_arrow
    return {
        "file": file,
        "rows": rows,
        "columns": [{"name": field.name, "type": str(field.type)} for field in schema],
        "bytes": path.stat().st_size,
        "sha256": digest_of(path),
    }


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with os.fdopen(open_untrusted(path, MAX_TABLE_BYTES), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def software_versions() -> dict[str, str]:
    """Versions of this program, Python and the installed libraries that it uses."""
    found = {"cobre": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def manifest_text(tables: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
    """The text of the manifest, deterministic for equal content."""
    content = {
        "format_version": FORMAT_VERSION,
        "software": software_versions(),
        "run": dict(facts),
        "tables": dict(tables),
    }
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a results directory; raises ResultsError if it is missing, damaged or of another version."""
    path = folder / MANIFEST_FILE
    try:
        content = read_stored_object(path)
    except FileNotFoundError as error:
        message = f"{folder} has no complete results: {MANIFEST_FILE} is missing (the run did not finish)"
        raise ResultsError(message) from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise ResultsError(f"{path} has format version {version}, and this program reads {FORMAT_VERSION}")
    return dict(content)
