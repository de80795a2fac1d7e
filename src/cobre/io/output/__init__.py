"""Results of a study as Parquet tables with a manifest."""

from cobre.io.output.results import (
    ResultsError,
    ResultTables,
    listed_file,
    open_results,
    read_manifest,
    read_results,
    write_results,
)

__all__ = [
    "ResultTables",
    "ResultsError",
    "listed_file",
    "open_results",
    "read_manifest",
    "read_results",
    "write_results",
]
