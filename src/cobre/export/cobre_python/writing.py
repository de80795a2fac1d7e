"""Files of this layout: Parquet with zstd compression, which cobre-python's reader needs, and JSON.

Two programs read it, cobre-python 0.18 and its successor novomodelo 0.19. Both have the same directories, tables and
dictionaries, and differ in what `Program` lists. Each loads no policy of another program or version than its own, so
policies bear its name and version: they name the format.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.export.cobre_python.columns import as_theirs, columns_of
from cobre.io.storage.untrusted_file import named_inside, open_untrusted
from cobre.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Program:
    """A reader of the layout.

    has_scaled_cuts: cuts in units of the cost scale, not in $. more_columns: by table, columns that follow those of
    cobre-python.
    """

    software: str
    version: str
    policy_format: int
    has_scaled_cuts: bool
    more_columns: Mapping[str, str] = field(default_factory=dict)


LAYOUT_0_18 = Program("cobre", "0.18.0", 3, has_scaled_cuts=False)
LAYOUT_0_19 = Program("novomodelo", "0.19.1", 4, True, {"convergence": "lazy_round_cap_hits"})


def write_table(path: Path, name: str, columns: "Mapping[str, Any] | pa.Table", more: str = "") -> None:
    """Write a table with cobre-python's columns, and `more`; null where not given, without rows if none is given."""
    import pyarrow as pa
    from pyarrow import parquet

    given = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    table = as_theirs(name, given, more) if given.num_columns else empty_table(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table.replace_schema_metadata(None), path, compression="zstd")


def empty_table(name: str) -> "pa.Table":
    """A table of cobre-python's layout without rows."""
    import pyarrow as pa

    fields = [pa.field(column, pa.type_for_alias(kind), null) for column, kind, null in columns_of(name)]
    return pa.schema(fields).empty_table()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, indented."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def copy_inside(run: Path, name: str, target: Path) -> None:
    """Copy a file of the run; raises UntrustedFileError when it is a device, or a link that leads out of the run."""
    source = open_untrusted(named_inside(run, name, f"{run / name}"))
    with os.fdopen(source, "rb") as read, target.open("xb") as written:
        shutil.copyfileobj(read, written)
