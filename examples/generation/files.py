"""The files of a case, in memory and on disk."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = Mapping[str, "dict[str, Any] | pa.Table"]  # by path inside the case


def table(**columns: list[Any]) -> pa.Table:
    """Return a table whose ids are int32 and other columns float64."""
    arrays = {
        name: pa.array(values, pa.int32() if name.endswith("_id") or name == "lag" else pa.float64())
        for name, values in columns.items()
    }
    return pa.table(arrays)


def write_case(folder: Path, files: Files) -> None:
    """Write all files; existing ones are replaced, others (such as a README) are kept."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path, compression="zstd")
        else:
            path.write_text(to_json(content) + "\n", encoding="utf-8")


def to_json(value: Any, depth: int = 0) -> str:
    """Return JSON with one entity per line."""
    if isinstance(value, dict) and depth < 2:
        lines = [f"{pad(depth + 1)}{json.dumps(key)}: {to_json(entry, depth + 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{pad(depth)}}}"
    if isinstance(value, list) and value and depth < 3:
        lines = [f"{pad(depth + 1)}{json.dumps(entry)}" for entry in value]
        return "[\n" + ",\n".join(lines) + f"\n{pad(depth)}]"
    return json.dumps(value)


def pad(depth: int) -> str:
    """Return the indentation: two spaces for each level."""
    return "  " * depth
