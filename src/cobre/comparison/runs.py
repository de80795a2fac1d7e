"""The runs that are compared, with their entities and stages matched."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.core.file_names import SIMULATION, STUDY_FILE, SUMMARY_FILE
from cobre.errors import CobreError
from cobre.io.output import ResultsError, read_manifest
from cobre.io.output.results import Columns, RowsInMemory, RowSource, StoredRows, scenario_rows, table_file
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.report.stored_study import StoredStudy

if TYPE_CHECKING:
    from cobre.study.results import SimulationResult


class NotComparableError(CobreError, ValueError):
    """Two studies that have no stage or no scenario in common."""


@dataclass(frozen=True)
class ComparedRun:
    """One of the two studies: study.json, tables of its simulation, and the mean cost in $ (None: unknown)."""

    name: str
    study: StoredStudy
    tables: Mapping[str, RowSource]
    mean_cost: float | None

    @classmethod
    def stored(cls, folder: Path) -> "ComparedRun":
        """Open the run in an output directory. Raises ResultsError without a complete simulation."""
        results = folder / SIMULATION
        entries = read_manifest(results).get("tables", {})
        try:
            tables = {name: StoredRows(table_file(results, name, entry)) for name, entry in entries.items()}
        except (OSError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"{results} cannot be read: {error}") from error
        mean = _object(folder / SUMMARY_FILE).get("simulated_mean_cost")
        return cls(str(folder), StoredStudy(_object(folder / STUDY_FILE)), tables, mean)

    @classmethod
    def in_memory(cls, result: "SimulationResult", name: str) -> "ComparedRun":
        """Take a simulation result in memory as one side of a comparison."""
        tables = {table: RowsInMemory(rows) for table, rows in result.tables.items()}
        return cls(name, StoredStudy(result.facts), tables, result.mean_cost)

    def has(self, table: str, columns: Sequence[str]) -> bool:
        """Return whether a table has these columns."""
        return table in self.tables and set(columns) <= set(self.columns(table))

    def columns(self, table: str) -> list[str]:
        """Return names of the columns of a table."""
        return list(self.tables[table].schema.names)

    def scenarios(self, table: str, columns: Sequence[str]) -> Iterator[tuple[int, Columns]]:
        """Yield the rows of each scenario, in the order of their ids."""
        return scenario_rows(self.tables[table], columns)

    def first_scenario(self, table: str, columns: Sequence[str]) -> Columns:
        """Return the rows of the first scenario, which has the stages and entities of all.

        Raises ResultsError without the table, NotComparableError without a scenario.
        """
        if table not in self.tables:
            raise ResultsError(f"{self.name} has no table {table} of a simulation")
        first = next(self.scenarios(table, columns), None)
        if first is None:
            raise NotComparableError(f"{self.name} has simulated no scenario")
        return first[1]


def common_scenarios(
    a: Iterator[tuple[int, Columns]], b: Iterator[tuple[int, Columns]]
) -> Iterator[tuple[int, Columns, Columns]]:
    """Yield scenarios that both have: id, rows of `a`, rows of `b`. Both must be in ascending order of ids."""
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
    """Read a JSON object; empty if the file is missing, so that ids are shown instead of names."""
    try:
        return read_stored_object(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}") from error


# Matching of the stages and entities of two studies.


@dataclass(frozen=True, slots=True)
class Match:
    """A stage or entity: its id in each study (None: the study does not have it), and its name."""

    a: int | None
    b: int | None
    name: str

    @property
    def present_in(self) -> str:
        """`both`, `A` or `B`: which of the studies has this entity."""
        return "A" if self.b is None else "B" if self.a is None else "both"


def match_stages(a: ComparedRun, b: ComparedRun, ids_a: Sequence[int], ids_b: Sequence[int]) -> list[Match]:
    """Match the stages of both studies, by start date if all stages have one, else by id."""
    dates_a, dates_b = a.study.starts(ids_a), b.study.starts(ids_b)
    if dates_a is None or dates_b is None:
        common = [id_ for id_ in ids_a if id_ in set(ids_b)]
        return [Match(id_, id_, label) for id_, label in zip(common, a.study.stage_labels(common), strict=True)]
    ids_by_date = dict(zip(dates_b, ids_b, strict=True))
    common = [id_ for id_, date in zip(ids_a, dates_a, strict=True) if date in ids_by_date]
    by_id = dict(zip(ids_a, dates_a, strict=True))
    return [
        Match(id_, ids_by_date[by_id[id_]], label)
        for id_, label in zip(common, a.study.stage_labels(common), strict=True)
    ]


def match_entities(
    a: ComparedRun, b: ComparedRun, kind: str, ids_a: Sequence[int], ids_b: Sequence[int]
) -> list[Match]:
    """Match the entities of both studies: those of A in their order, then those that only B has.

    Entities match if they have the same id and name, or else the same name, if it is unique in each study. An id
    that belongs to another name in the other study does not match.
    """
    names_a = {id_: a.study.entity_name(kind, id_) for id_ in ids_a}
    names_b = {id_: b.study.entity_name(kind, id_) for id_ in ids_b}
    partners = {id_: id_ for id_ in ids_a if names_b.get(id_) == names_a[id_]}
    once_a, once_b = _unique_names(names_a, partners), _unique_names(names_b, partners.values())
    partners |= {id_: once_b[name] for name, id_ in once_a.items() if name in once_b}
    matches = [Match(id_, partners.get(id_), names_a[id_]) for id_ in ids_a]
    matched = set(partners.values())
    return matches + [Match(None, id_, names_b[id_]) for id_ in ids_b if id_ not in matched]


def _unique_names(names: Mapping[int, str], matched: Collection[int]) -> dict[str, int]:
    """Return ids by name of entities that are not in `taken`, for unique names."""
    remaining = {id_: name for id_, name in names.items() if id_ not in matched}
    counts = Counter(remaining.values())
    return {name: id_ for id_, name in remaining.items() if counts[name] == 1}
