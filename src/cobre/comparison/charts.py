"""Charts of the comparison page: both studies by stage, and the difference with its confidence interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cobre.comparison.quantities import title_of, unit_of
from cobre.comparison.result import StudyComparison
from cobre.core.arrays import Floats
from cobre.report.chart import Band, Chart, Mark, Series
from cobre.report.palette import BLUE, GREEN, ORANGE

BAND = 0.25

Row = dict[str, Any]


def level_chart(comparison: StudyComparison, quantity: str) -> Chart:
    """A quantity of the whole system by stage, in A and in B."""
    rows = stage_rows(comparison, quantity, None)
    a, b = (numbers_of(rows, name) for name in ("a", "b"))
    unit = unit_of(quantity)
    means = f"on average {np.nanmean(a):,.4g} {unit} in A and {np.nanmean(b):,.4g} {unit} in B"
    return Chart(
        f"compare-{quantity}",
        title_of(quantity),
        f"{title_of(quantity)} by stage: {means}.",
        unit,
        [row["stage"] for row in rows],
        (Series("A", a, BLUE), Series("B", b, ORANGE, "dash")),
        (),
        (Mark("A", BLUE), Mark("B", ORANGE, "dash")),
    )


def difference_chart(comparison: StudyComparison, quantity: str) -> Chart:
    """The difference B - A of a quantity of the whole system by stage, with its confidence band."""
    rows = stage_rows(comparison, quantity, None)
    difference, half_width = (numbers_of(rows, name) for name in ("difference", "half_width"))
    unit = unit_of(quantity)
    return Chart(
        f"difference-{quantity}",
        f"{title_of(quantity)}: B - A",
        f"From {np.nanmin(difference):,.4g} to {np.nanmax(difference):,.4g} {unit} by stage.",
        unit,
        [row["stage"] for row in rows],
        (
            Series("B - A", difference, GREEN),
            Series("± 95 %", half_width, drawing="none"),
            Series("low end of the interval", difference - half_width, drawing="none"),
            Series("high end of the interval", difference + half_width, drawing="none"),
        ),
        (Band(3, 2, GREEN, BAND),),
        (Mark("B - A", GREEN), Mark("its 95 % confidence interval", GREEN, "band", BAND)),
    )


def stage_rows(comparison: StudyComparison, quantity: str, entity: int | str | None) -> list[Row]:
    """Rows of a quantity and entity (None: the system) by stage. Raises ValueError, with the known names."""
    rows: list[Row] = [row for row in comparison.all_rows.to_pylist() if row["stage"] is not None]
    known = list(dict.fromkeys(row["quantity"] for row in rows if row["entity"] is None and row["a"] is not None))
    if entity is not None:
        known = list(dict.fromkeys(row["quantity"] for row in rows))
    if quantity not in known:
        raise ValueError(f"there is no {quantity!r} to plot; this comparison has {', '.join(known)}")
    rows = [row for row in rows if row["quantity"] == quantity]
    found = [row for row in rows if _is_of(row, entity)]
    if not found:
        names = ", ".join(dict.fromkeys(str(row["entity"]) for row in rows if row["entity"] is not None))
        raise ValueError(f"{quantity} has no {entity!r}; there are {names}")
    return found


def _is_of(row: Row, entity: int | str | None) -> bool:
    return row["entity"] is None if entity is None else entity in (row["entity_id"], row["entity"])


def numbers_of(rows: Sequence[Row], name: str) -> Floats:
    """A column of the rows as an array; NaN where it is None."""
    return np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
