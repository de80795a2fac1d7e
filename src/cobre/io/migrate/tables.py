"""Parquet tables: renamed columns, windows of dates, bounds by side, strict types."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cobre.io.constraints.reading import BOUNDS
from cobre.io.decoding.parquet_tables import STORED_AS, TableFormat
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.io.migrate.initial_conditions import HISTORY, windows_of_history
from cobre.io.migrate.old_case import EXCHANGE_FACTORS, GENERIC_CONSTRAINTS, Notes, OldCase

if TYPE_CHECKING:
    import pyarrow as pa

LINE_BOUNDS = OVERRIDE_TABLES["line_bounds"].file
RENAMED: Mapping[str, Mapping[str, str]] = {
    "scenarios/external_ncs_scenarios.parquet": {"value": "availability_factor"},
    "constraints/penalty_overrides_ncs.parquet": {"source_id": "ncs_id"},
    "constraints/pumping_bounds.parquet": {"station_id": "pumping_station_id"},
    "constraints/hydro_bounds.parquet": {"filling_inflow_m3s": "filling_min_rate_m3s"},
}
# Tables and columns that the older program read but ignored.
NOW_EFFECTIVE: Mapping[str, tuple[str, ...]] = {
    "constraints/penalty_overrides_ncs.parquet": ("curtailment_cost",),
    "constraints/pumping_bounds.parquet": ("min_m3s", "max_m3s"),
    "constraints/contract_bounds.parquet": ("min_mw", "max_mw", "price_per_mwh"),
    "constraints/hydro_bounds.parquet": ("max_diversion_m3s", "filling_min_rate_m3s"),
    "constraints/thermal_bounds.parquet": ("block_id",),
}
SENSES = {"<=": (None, 1), ">=": (1, None), "==": (1, 1)}


def formats() -> dict[str, TableFormat]:
    """Table formats of the new case format, by file."""
    known = (*SCENARIO_TABLES.values(), *OVERRIDE_TABLES.values(), *PRODUCTION_TABLES.values(), BOUNDS)
    return {form.file: form for form in known}


def rename_columns(case: OldCase, notes: Notes) -> None:
    """Rename columns that have a new name."""
    for file, names in RENAMED.items():
        table = case.tables.get(file)
        for old, new in names.items():
            if table is not None and old in table.column_names and new not in table.column_names:
                table = table.rename_columns([new if name == old else name for name in table.column_names])
                case.tables[file] = table
                notes.converted(file, f"the column {old} is now {new}")


def date_history(case: OldCase, notes: Notes) -> None:
    """Replace the date of each observation of the history by a window."""
    import pyarrow as pa  # noqa: PLC0415

    table = case.tables.get(HISTORY)
    if table is None or "date" not in table.column_names:
        return
    rows = sorted(table.to_pylist(), key=lambda row: (row["hydro_id"], row["date"]))
    windows: dict[tuple[int, Any], tuple[Any, Any]] = {}
    for hydro_id in dict.fromkeys(row["hydro_id"] for row in rows):
        dates = [row["date"] for row in rows if row["hydro_id"] == hydro_id]
        windows |= {(hydro_id, day): window for day, window in zip(dates, windows_of_history(dates), strict=True)}
    found = [windows[row["hydro_id"], row["date"]] for row in rows]
    case.tables[HISTORY] = pa.table(
        {
            "hydro_id": pa.array([row["hydro_id"] for row in rows], pa.int32()),
            "start_date": pa.array([window[0] for window in found], pa.date32()),
            "end_date": pa.array([window[1] for window in found], pa.date32()),
            "value_m3s": pa.array([row["value_m3s"] for row in rows], pa.float64()),
        }
    )
    notes.converted(HISTORY, "each date is now the window of its month, or the time until the next observation")


def split_bounds(case: OldCase, notes: Notes) -> None:
    """Convert `sense` and `bound` to lower and upper bounds."""
    import pyarrow as pa  # noqa: PLC0415

    constraints = case.entities(GENERIC_CONSTRAINTS, "constraints")
    senses = {constraint["id"]: constraint.pop("sense", "<=") for constraint in constraints}
    if senses:
        notes.converted(GENERIC_CONSTRAINTS, "the sense of a constraint is now the side of its bounds")
    table = case.tables.get(BOUNDS.file)
    if table is None or "bound" not in table.column_names:
        return
    rows = table.to_pylist()
    sides = [SENSES[senses.get(row["constraint_id"], "<=")] for row in rows]
    for column, side in (("bound_lower", 0), ("bound_upper", 1)):
        values = [row["bound"] if given[side] else None for row, given in zip(rows, sides, strict=True)]
        table = table.append_column(column, pa.array(values, pa.float64()))
    case.tables[BOUNDS.file] = table.drop_columns(["bound"])
    notes.converted(BOUNDS.file, "bound is now bound_lower, bound_upper or both")


def move_exchange_factors(case: OldCase, notes: Notes) -> None:
    """Convert factors of lines by block to bounds by block: the bound of the stage times the factor."""
    import pyarrow as pa  # noqa: PLC0415

    factors = case.documents.pop(EXCHANGE_FACTORS, {}).get("exchange_factors", [])
    if not factors:
        return
    capacities = {line["id"]: line["capacity"] for line in case.entities("system/lines.json", "lines")}
    table = case.tables.get(LINE_BOUNDS)
    rows = [] if table is None else table.to_pylist()
    stage_rows = {(row["line_id"], row["stage_id"]): row for row in rows if row.get("block_id") is None}
    for entry in factors:
        key = (entry["line_id"], entry["stage_id"])
        in_force = {**capacities[entry["line_id"]], **_given(stage_rows.get(key, {}))}
        for block in entry["block_factors"]:
            bounds = {
                "direct_mw": in_force["direct_mw"] * block.get("direct_factor", 1.0),
                "reverse_mw": in_force["reverse_mw"] * block.get("reverse_factor", 1.0),
            }
            rows.append({"line_id": key[0], "stage_id": key[1], "block_id": block["block_id"], **bounds})
    columns = {"line_id": pa.int32(), "stage_id": pa.int32(), "block_id": pa.int32()}
    columns |= {"direct_mw": pa.float64(), "reverse_mw": pa.float64()}
    arrays = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in columns.items()}
    case.tables[LINE_BOUNDS] = pa.table(arrays)
    notes.converted(LINE_BOUNDS, f"factors of {EXCHANGE_FACTORS} are now bounds by block")


def _given(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("direct_mw", "reverse_mw") if row.get(name) is not None}


def note_new_effects(case: OldCase, notes: Notes) -> None:
    """Note the columns that the older program ignored."""
    for file, columns in NOW_EFFECTIVE.items():
        table = case.tables.get(file)
        if table is not None:
            live = [name for name in columns if name in table.column_names and table[name].null_count < table.num_rows]
            if live:
                notes.now_effective(file, ", ".join(live))


def strict_types(case: OldCase, notes: Notes) -> None:
    """Keep only columns of the format, and convert them to its types."""
    known = formats()
    for file in list(case.tables):
        if file not in known:
            del case.tables[file]
            notes.dropped(file, "which is not a table of the format")
        else:
            case.tables[file] = _conformed(case.tables[file], known[file], notes)


def _conformed(table: "pa.Table", form: TableFormat, notes: Notes) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    kinds = {column.name: STORED_AS[column.kind] for column in form.columns}
    others = [name for name in table.column_names if name not in kinds]
    if others:
        notes.dropped(form.file, f"columns that the format has not: {', '.join(others)}")
    kept = table.select([name for name in table.column_names if name in kinds])
    fields = [pa.field(field.name, _arrow_type(kinds[field.name])) for field in kept.schema]
    changed = [old.name for old, new in zip(kept.schema, fields, strict=True) if old.type != new.type]
    if changed:
        notes.converted(form.file, f"types of the columns {', '.join(changed)}")
    return kept.cast(pa.schema(fields))


def _arrow_type(name: str) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415

    types = {"int32": pa.int32(), "uint32": pa.uint32(), "double": pa.float64(), "date32[day]": pa.date32()}
    return types[name]
