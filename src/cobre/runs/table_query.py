"""Queries of the tables of a run: columns, scenarios, stages and entities, as rows or as statistics."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.core.file_names import CONVERGENCE, MANIFEST_FILE, SIMULATION, STUDY_FILE, TRAINING
from cobre.errors import CobreError
from cobre.io.output import listed_file, read_manifest
from cobre.io.output.results import TABLE_NAME
from cobre.io.storage.stored_json import json_value, read_stored_object
from cobre.records import dataclass
from cobre.runs.labels import KEYS, KINDS_BY_ID

if TYPE_CHECKING:
    import pyarrow as pa

STATISTICS = ("mean", "min", "max")


class QueryError(CobreError):
    """A query that the results cannot answer; the message lists what is available."""

    remedy = "choose from what the message lists"


@dataclass(frozen=True, slots=True)
class TableQuery:
    """A query of one table. Filters that are None or empty select everything.

    entities: ids or names, for the id column of the table (`hydro_id` in the table of hydros).
    group_by: columns whose equal values make one row, with mean, minimum and maximum of the other columns.
    """

    table: str
    columns: Sequence[str] = ()
    scenarios: Sequence[int] | None = None
    stages: Sequence[int] | None = None
    entities: Sequence[int | str] | None = None
    group_by: Sequence[str] = ()
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The result of a query. total: number of matching rows; `rows`: those from the offset up to the limit."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    total: int
    names: Mapping[str, Mapping[int, str]]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as the assistant server sends it."""
        names = {column: {str(id_): name for id_, name in of.items()} for column, of in self.names.items()}
        return {
            "table": self.table,
            "columns": list(self.columns),
            "rows": [dict(row) for row in self.rows],
            "total": self.total,
            "names": names,
        }


def available_tables(folder: Path) -> dict[str, list[str]]:
    """Return the columns of each table of a run. Raises ResultsError if there are none."""
    folders = [name for name in (TRAINING, SIMULATION) if (folder / name / MANIFEST_FILE).exists()] or [SIMULATION]
    return {table: columns for name in folders for table, columns in _entries(folder / name).items()}


def query_table(folder: Path, query: TableQuery) -> TableAnswer:
    """Answer a query from the output directory of a run. Raises QueryError and ResultsError."""
    import pyarrow.compute as pc

    columns = _columns(folder, query)
    names = _names(folder)
    requested = {
        "scenario_id": query.scenarios,
        "stage_id": query.stages,
        **_entity_filter(query, columns, names),
    }
    selected = _selected_columns(query, columns)
    filters = {name: values for name, values in requested.items() if values is not None}
    _require_known_columns(query.table, columns, (*selected, *query.group_by, *filters))
    table = _read(folder, query.table, dict.fromkeys((*query.group_by, *selected, *filters)))
    for name, values in filters.items():
        table = table.filter(pc.is_in(table[name], _as_array(values, table[name].type)))
    table = _statistics(table, query.group_by, selected) if query.group_by else table.select(selected)
    page = table.slice(query.offset, query.limit)
    rows = tuple({key: json_value(value) for key, value in row.items()} for row in page.to_pylist())
    return TableAnswer(query.table, tuple(table.column_names), rows, table.num_rows, _names_in(rows, names))


def _entries(folder: Path) -> dict[str, list[str]]:
    tables = read_manifest(folder).get("tables", {})
    return {str(name): [str(column["name"]) for column in entry["columns"]] for name, entry in tables.items()}


def _columns(folder: Path, query: TableQuery) -> list[str]:
    tables = available_tables(folder)
    if query.table not in tables:
        raise QueryError(f"there is no table {query.table!r}; there are {', '.join(sorted(tables))}")
    return tables[query.table]


def _selected_columns(query: TableQuery, columns: Sequence[str]) -> list[str]:
    """Return the columns of a query; for statistics, all number columns that are not keys."""
    if query.columns:
        return [name for name in dict.fromkeys(query.columns) if name not in query.group_by]
    if query.group_by:
        return [name for name in columns if name not in query.group_by and not name.endswith("_id")]
    return list(columns)


def _require_known_columns(table: str, columns: Sequence[str], names: Iterable[str]) -> None:
    if unknown := [name for name in dict.fromkeys(names) if name not in columns]:
        raise QueryError(f"the table {table} has no column {', '.join(unknown)}; it has {', '.join(columns)}")


def _entity_filter(
    query: TableQuery, columns: Sequence[str], names: Mapping[str, Mapping[int, str]]
) -> dict[str, list[int]]:
    if query.entities is None:
        return {}
    column = next((name for name in columns if name.endswith("_id") and name not in KEYS), None)
    if column is None:
        raise QueryError(f"the table {query.table} is not about entities; it has {', '.join(columns)}")
    return {column: [_entity(value, names.get(column, {}), column) for value in query.entities]}


def _entity(value: int | str, names: Mapping[int, str], column: str) -> int:
    if isinstance(value, int):
        return value
    ids = [id_ for id_, name in names.items() if name == value]
    if len(ids) != 1:
        names_and_ids = ", ".join(f"{name} ({id_})" for id_, name in names.items()) or "none by name"
        raise QueryError(f"{value!r} is the name of {len(ids)} entities of {column}; there are {names_and_ids}")
    return ids[0]


def _read(folder: Path, name: str, columns: Iterable[str]) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import parquet

    if not TABLE_NAME.fullmatch(name):
        raise QueryError(f"{name!r} is not a table name")
    path = listed_file(folder / (TRAINING if name == CONVERGENCE else SIMULATION), name)
    try:
        with parquet.ParquetFile(path) as file:
            return file.read(columns=list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise QueryError(f"{path} cannot be read: {error}") from error


def _as_array(values: Sequence[int], kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    try:
        return pa.array(list(values), type=kind)
    except (pa.ArrowException, OverflowError) as error:
        raise QueryError(f"{list(values)} are not values of this column: {error}") from error


def _statistics(table: "pa.Table", keys: Sequence[str], columns: Sequence[str]) -> "pa.Table":
    import pyarrow as pa

    if texts := [name for name in columns if pa.types.is_string(table.schema.field(name).type)]:
        raise QueryError(f"cannot average {', '.join(texts)}: text columns")
    unique = list(dict.fromkeys(keys))
    grouped = table.group_by(unique, use_threads=False)
    statistics = grouped.aggregate([(name, statistic) for name in columns for statistic in STATISTICS])
    return statistics.sort_by([(key, "ascending") for key in unique])


def _names(folder: Path) -> dict[str, dict[int, str]]:
    """Return names of entities by id, for each id column; empty without study.json."""
    try:
        entities = read_stored_object(folder / STUDY_FILE)["entities"]
        return {
            column: {int(entity["id"]): str(entity["name"]) for entity in entities.get(kind, ())}
            for column, kind in KINDS_BY_ID.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryError(f"{folder / STUDY_FILE} cannot be read: {error!r}") from error


def _names_in(rows: Sequence[Mapping[str, Any]], names: Mapping[str, Mapping[int, str]]) -> dict[str, dict[int, str]]:
    """Return, by id column, the names of the entities that occur in the rows."""
    columns = [column for column in (rows[0] if rows else ()) if column in names]
    ids_shown = {column: sorted({row[column] for row in rows}) for column in columns}
    return {
        column: {id_: names[column][id_] for id_ in ids if id_ in names[column]} for column, ids in ids_shown.items()
    }
