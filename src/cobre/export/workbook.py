"""An Excel workbook with a sheet for each table."""

import math
from pathlib import Path
from typing import Any

from cobre.export.run_tables import RunTables
from cobre.export.source import ExportError
from cobre.io.output.scenario_rows import RowSource
from cobre.study.results.dataframes import library

MAX_ROWS = 1_048_576
MAX_SHEET_NAME = 31


def check_rows(tables: RunTables) -> None:
    """Raise ExportError for a table with more rows than a sheet holds: no rows are cut off."""
    too_long = {name: rows.rows for name, rows in tables.tables.items() if rows.rows + 1 > MAX_ROWS}
    if too_long:
        listed = ", ".join(f"{name} has {count:,} rows" for name, count in too_long.items())
        others = " ".join(f"--table {name}" for name in tables.tables if name not in too_long)
        raise ExportError(
            f"an Excel sheet holds {MAX_ROWS:,} rows including the heading, but {listed}: export other tables "
            f"({others}), or all of them with --to csv or --to duckdb"
        )


def write_workbook(tables: RunTables, target: Path) -> None:
    """Write all tables into an Excel workbook, row by row in constant memory."""
    check_rows(tables)
    options = {"constant_memory": True, "tmpdir": str(target.parent), "default_date_format": "yyyy-mm-dd"}
    with library("xlsxwriter", "[excel]").Workbook(str(target), options) as book:
        bold = book.add_format({"bold": True})
        for name, rows in tables.tables.items():
            _write_sheet(book.add_worksheet(name[:MAX_SHEET_NAME]), rows, bold)


def _write_sheet(sheet: Any, rows: RowSource, bold: Any) -> None:
    names = rows.schema.names
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, max(0, len(names) - 1), 14)
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, bold)
    at = 1
    for piece in rows.pieces():
        for values in zip(*(piece[name].to_pylist() for name in names), strict=True):
            for column, value in enumerate(values):
                _write_cell(sheet, at, column, value)
            at += 1


def _write_cell(sheet: Any, row: int, column: int, value: Any) -> None:
    """Text is never taken as a formula; None, NaN and infinities are empty cells."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    if isinstance(value, str):
        sheet.write_string(row, column, value)
    elif isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value)
    else:
        sheet.write_datetime(row, column, value)
