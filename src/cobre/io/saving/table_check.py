"""Checks of tables of a case in memory: complete columns, right types, finite numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.io.constraints.reading import BOUNDS
from cobre.io.decoding.magnitudes import MAX_NUMBER
from cobre.io.decoding.parquet_tables import Column, TableFormat
from cobre.io.findings.problems import Layer, Problems
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, SCENARIO_TABLES, production_tables

KINDS = {"id": "iu", "index": "iu", "number": "f", "date": "M"}
TYPE_NAMES = {"id": "whole numbers", "index": "whole numbers", "number": "floating-point numbers", "date": "dates"}


def case_tables(case: Case) -> Iterator[tuple[TableFormat, Table]]:
    """The Parquet tables of a case, by file."""
    owners = (
        (SCENARIO_TABLES, case.scenarios),
        (OVERRIDE_TABLES, case.overrides),
        (production_tables(case.format_version), case.production),
    )
    for formats, owner in owners:
        for name, form in formats.items():
            if (table := getattr(owner, name)) is not None:
                yield form, table
    if case.generic_constraints.bounds is not None:
        yield BOUNDS, case.generic_constraints.bounds


def check_tables(case: Case, problems: Problems) -> None:
    """Add an error for each column that violates the format."""
    for form, table in case_tables(case):
        lengths = {len(table[column.name]) for column in form.columns if column.name in table}
        for column in form.columns:
            _check_column(form, column, table.get(column.name), problems)
        if len(lengths) > 1:
            problems.error(Layer.SCHEMA, form.file, "", "", "has columns of several lengths", "one entry for each row")


def _check_column(form: TableFormat, column: Column, values: NDArray[Any] | None, problems: Problems) -> None:
    if values is None:
        message, remedy = "the column is missing", f"a column of {TYPE_NAMES[column.kind]}"
    elif values.dtype.kind not in KINDS[column.kind]:
        message, remedy = (
            f"expected {TYPE_NAMES[column.kind]}, got {values.dtype}",
            f"convert it to {TYPE_NAMES[column.kind]}",
        )
    elif (odd := _odd_rows(column, values)).size:
        message, remedy = f"is {values[odd[0]]} in row {odd[0]}", _right(column)
    else:
        return
    problems.error(Layer.SCHEMA, form.file, "", column.name, message, remedy)


def _odd_rows(column: Column, values: NDArray[Any]) -> NDArray[np.intp]:
    """Return rows without a required value, or with a number that is not finite or too large."""
    if column.kind == "number":
        is_right = np.abs(values) <= MAX_NUMBER
        return np.flatnonzero(~is_right & ~np.isnan(values)) if column.is_nullable else np.flatnonzero(~is_right)
    if column.kind == "date":
        return np.flatnonzero(np.isnat(values)) if not column.is_nullable else np.zeros(0, np.intp)
    low, high = (0, 2**32) if column.kind == "index" else (-(2**31), 2**31)
    is_odd = (values < low) | (values >= high)
    return np.flatnonzero(is_odd if column.is_nullable else is_odd | (values == ABSENT_ID))


def _right(column: Column) -> str:
    if column.kind == "number":
        return f"a number of at most {MAX_NUMBER:g} in size{', or NaN for none' if column.is_nullable else ''}"
    if column.kind == "date":
        return "a date in every row"
    return "a whole number of at most 32 bits in every row"
