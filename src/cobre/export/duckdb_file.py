"""One DuckDB file with a table for each table of the run."""

from pathlib import Path

from cobre.export.run_tables import RunTables
from cobre.io.output.scenario_rows import RowSource
from cobre.study.results.dataframes import library


def write_duckdb(tables: RunTables, target: Path) -> None:
    """Write all tables, row group by row group; DuckDB downloads no extensions."""
    duckdb = library("duckdb", "[duckdb]")
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(target), config=settings) as database:
        for name, rows in tables.tables.items():
            database.from_arrow(_reader(rows)).create(name)


def _reader(rows: RowSource) -> object:
    import pyarrow as pa

    batches = (batch for piece in rows.pieces() for batch in piece.to_batches())
    return pa.RecordBatchReader.from_batches(rows.schema, batches)
