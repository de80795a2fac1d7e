"""One of the two studies: its tables, read scenario by scenario, and the names and dates of study.json."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.comparison.errors import NotComparableError
from cobre.io.output import ResultsError, read_manifest
from cobre.io.output.results import table_file
from cobre.io.output.scenario_rows import Columns, RowsInMemory, RowSource, StoredRows, scenario_rows
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.report.study_facts import StudyFacts
from cobre.runs.files import SIMULATION, STUDY_FILE, SUMMARY_FILE

if TYPE_CHECKING:
    from cobre.study.results.script_results import SimulationResult


@dataclass(frozen=True)
class ComparedRun:
    """One study; `tables` are those of its simulation, `mean_cost` is in $ (None: unknown)."""

    name: str
    study: StudyFacts
    tables: Mapping[str, RowSource]
    mean_cost: float | None

    @classmethod
    def stored(cls, folder: Path) -> "ComparedRun":
        """The run in an output directory. Raises ResultsError without a complete simulation."""
        results = folder / SIMULATION
        entries = read_manifest(results).get("tables", {})
        try:
            tables = {name: StoredRows(table_file(results, name, entry)) for name, entry in entries.items()}
        except (OSError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"{results} cannot be read: {error}") from error
        mean = _object(folder / SUMMARY_FILE).get("simulated_mean_cost")
        return cls(str(folder), StudyFacts(_object(folder / STUDY_FILE)), tables, mean)

    @classmethod
    def in_memory(cls, result: "SimulationResult", name: str) -> "ComparedRun":
        """A simulation result in memory as one side of a comparison."""
        tables = {table: RowsInMemory(rows) for table, rows in result.tables.items()}
        return cls(name, StudyFacts(result.facts), tables, result.mean_cost)

    def has(self, table: str, columns: Sequence[str]) -> bool:
        """Whether a table has these columns."""
        return table in self.tables and set(columns) <= set(self.columns(table))

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table."""
        return list(self.tables[table].schema.names)

    def scenarios(self, table: str, columns: Sequence[str]) -> Iterator[tuple[int, Columns]]:
        """The rows of each scenario, in the order of their ids."""
        return scenario_rows(self.tables[table], columns)

    def first_scenario(self, table: str, columns: Sequence[str]) -> Columns:
        """The rows of the first scenario, which has the stages and entities of all.

        Raises ResultsError without the table, NotComparableError without a scenario.
        """
        if table not in self.tables:
            raise ResultsError(f"{self.name} has no table {table} of a simulation")
        found = next(self.scenarios(table, columns), None)
        if found is None:
            raise NotComparableError(f"{self.name} has simulated no scenario")
        return found[1]


def in_step(
    a: Iterator[tuple[int, Columns]], b: Iterator[tuple[int, Columns]]
) -> Iterator[tuple[int, Columns, Columns]]:
    """Scenarios that both have: id, rows of `a`, rows of `b`. Both must be in ascending order of ids."""
    first, second = next(a, None), next(b, None)
    while first is not None and second is not None:
        if first[0] == second[0]:
            yield first[0], first[1], second[1]
            first, second = next(a, None), next(b, None)
        elif first[0] < second[0]:
            first = next(a, None)
        else:
            second = next(b, None)


def _object(path: Path) -> Mapping[str, Any]:
    """A JSON object; empty where the file is missing: ids are then shown instead of names."""
    try:
        return read_stored_object(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error
