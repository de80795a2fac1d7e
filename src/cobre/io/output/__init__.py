"""Results of a study as Parquet tables with a manifest."""

from cobre.io.output.manifest import ResultsError, read_manifest
from cobre.io.output.results import ResultTables, read_results, write_results

__all__ = ["ResultTables", "ResultsError", "read_manifest", "read_results", "write_results"]
