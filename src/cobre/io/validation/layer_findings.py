"""Findings of the rules of a layer, and parts of messages that rules share."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Case, Table
from cobre.io.file_names import STAGES_FILE
from cobre.io.findings.problems import Layer, Problems

MAX_NAMED = 8

NO_ENTITY = "there is no "


class Findings:
    """Collects problems of one validation layer."""

    def __init__(self, layer: Layer, problems: Problems) -> None:
        self._layer = layer
        self._problems = problems

    def error(self, file: str, entity: str, field: str, message: str, remedy: str) -> None:
        """Add an error, which keeps the study from running."""
        self._problems.error(self._layer, file, entity, field, message, remedy)

    def warn(self, file: str, entity: str, field: str, message: str, remedy: str = "") -> None:
        """Add a warning."""
        self._problems.warn(self._layer, file, entity, field, message, remedy)

    def demand_known(
        self, known: Collection[int], word: str, id_: int | None, file: str, entity: str, field: str
    ) -> None:
        """Add an error if an id (None: no reference) is not declared."""
        if id_ is not None and id_ not in known:
            self.error(file, entity, field, f"{NO_ENTITY}{word} {id_}", f"declared: {listed(known)}")

    def report_rows(
        self,
        file: str,
        table: Table,
        wrong: Iterable[tuple[str, NDArray[np.bool_], str]],
        entity_of: Callable[[Table, int], str],
    ) -> None:
        """Add an error for each invalid number of a table; `wrong`: column, flags of its rows, expected value."""
        for column, is_wrong, expected in wrong:
            for row in np.flatnonzero(is_wrong).tolist():
                self.error(file, entity_of(table, row), column, f"is {table[column][row]:g}", expected)

    def demand_not_negative(self, value: float, file: str, entity: str, field: str) -> None:
        """Add an error if a number is negative."""
        if value < 0.0:
            self.error(file, entity, field, f"is {value:g}", "at least 0")

    def demand_order(self, lower: float, upper: float | None, file: str, entity: str, fields: tuple[str, str]) -> None:
        """Add an error if a minimum is above its maximum (None: no limit), or a maximum is negative."""
        if upper is not None and upper < 0:
            self.error(file, entity, fields[1], f"is {upper:g}", "at least 0")
        elif upper is not None and lower > upper:
            message = f"is {lower:g}, above {fields[1]}, which is {upper:g}"
            self.error(file, entity, fields[0], message, "at most the maximum")


class Named(Protocol):
    """Anything with an id and a name: entities, constraints, parameters."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


Rule = Callable[[Case, Findings], None]


def named(word: str, entity: Named) -> str:
    """An entity in messages, such as `hydro 3 (ITAIPU)`."""
    return f"{word} {entity.id} ({entity.name})"


def listed(ids: Collection[int]) -> str:
    """Ids for a message; of many ids, the first ones and the count."""
    shown = [str(id_) for id_ in sorted(ids)[:MAX_NAMED]]
    more = f", ... ({len(ids)} in all)" if len(ids) > MAX_NAMED else ""
    return ", ".join(shown) + more if shown else "none"


def with_ids(word: str, ids: Collection[int]) -> str:
    """Such as `stage 3` or `stages 3, 4`."""
    return f"{word}{'' if len(ids) == 1 else 's'} {listed(ids)}"


def distinct(table: Table | None, *columns: str) -> list[tuple[int, ...]]:
    """The distinct combinations of integer columns, sorted; empty without the table."""
    if table is None or table[columns[0]].size == 0:
        return []
    order = np.lexsort([table[column] for column in reversed(columns)])
    ordered = [table[column][order] for column in columns]
    is_first = np.append(True, ~repeats(ordered))
    return list(zip(*(values[is_first].tolist() for values in ordered), strict=True))


def repeats(columns: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """For each row but the first of sorted columns: whether it equals the row before."""
    same = np.ones(max(0, len(columns[0]) - 1), np.bool_)
    for values in columns:
        same &= values[1:] == values[:-1]
    return same


# Features of the format that are not modelled yet, and that only the complete case shows.


FILE = STAGES_FILE


def refuse_what_is_not_modelled(case: Case, problems: Problems) -> None:
    """Add an error for each feature that would be ignored or computed wrongly."""
    for check in CHECKS:
        check(case, problems)


def has_inflow_lags(case: Case) -> bool:
    """Whether inflows depend on earlier ones: by coefficients that are given, or that will be estimated."""
    tables = case.scenarios
    if not case.system.hydros:
        return False
    if _has_rows(tables.inflow_ar_coefficients) or _has_rows(tables.inflow_annual_component):
        return True
    return _has_rows(tables.inflow_history) and case.config.estimation.max_order > 0


def _has_rows(table: Table | None) -> bool:
    return table is not None and next(iter(table.values())).size > 0


def _sampling_methods(case: Case, problems: Problems) -> None:
    if case.config.training.scenario_source.has_openings_file:
        return
    for stage in case.horizon.stages:
        if stage.sampling_method == "selective":
            message = "openings cannot be drawn by the method `selective`"
            problems.error(Layer.MEANING, FILE, f"stage {stage.id}", "sampling_method", message, "saa, for example")


CHECKS: tuple[Callable[[Case, Problems], None], ...] = (_sampling_methods,)
