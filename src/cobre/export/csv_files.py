"""A folder of CSV files, one for each table."""

from pathlib import Path

from cobre.export.run_tables import RunTables
from cobre.export.spreadsheet_text import with_spreadsheet_text
from cobre.io.storage.confined import create_file


def write_csv(tables: RunTables, folder: Path) -> None:
    """Write each table, row group by row group; null is an empty field, text that looks like a formula is escaped."""
    from pyarrow import csv

    for name, rows in tables.tables.items():
        with create_file(folder / f"{name}.csv") as stream, csv.CSVWriter(stream, rows.schema) as writer:
            for piece in rows.pieces():
                writer.write_table(with_spreadsheet_text(piece))
