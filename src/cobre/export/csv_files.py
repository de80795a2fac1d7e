"""A folder of CSV files, one for each table."""

from pathlib import Path

from cobre.export.run_tables import RunTables
from cobre.io.confined import create_file


def write_csv(tables: RunTables, folder: Path) -> None:
    """Row group by row group; what is not there is an empty field."""
    from pyarrow import csv

    for name, rows in tables.tables.items():
        with create_file(folder / f"{name}.csv") as stream, csv.CSVWriter(stream, rows.schema) as writer:
            for piece in rows.pieces():
                writer.write_table(piece)
