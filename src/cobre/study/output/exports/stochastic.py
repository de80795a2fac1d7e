"""The inflow model and the openings as files that a case could hold."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.case import Case
from cobre.io.output.results import write_results
from cobre.io.saving.scenario_documents import correlation_document
from cobre.io.storage.arrow_columns import table_of
from cobre.io.storage.atomic import check_writable
from cobre.io.storage.confined import remove_file
from cobre.io.storage.stored_json import write_json
from cobre.stochastic.inflows import InflowDescription, describe_inflows
from cobre.stochastic.model import NoiseModel
from cobre.stochastic.par.terms import TermsRow
from cobre.stochastic.scenario_sources import training_libraries

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[float, ...]
STATISTICS = ("hydro_id", "stage_id", "mean_m3s", "std_m3s")
COEFFICIENTS = ("hydro_id", "stage_id", "lag", "coefficient")
ANNUAL = ("hydro_id", "stage_id", "annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
IDS = ("hydro_id", "stage_id", "lag")


def write_stochastic(folder: Path, case: Case, noise: NoiseModel) -> None:
    """All tables, and correlation.json where anything is correlated."""
    description = describe_inflows(case, training_libraries(case).get("inflow"))
    correlation = case.scenarios.correlation or description.correlation
    check_writable(folder)
    file = folder / "correlation.json"
    if correlation is None:
        remove_file(file)
    else:
        write_json(file, correlation_document(correlation))
    write_results(folder, stochastic_tables(case, description, noise), {})


def stochastic_tables(case: Case, description: InflowDescription, noise: NoiseModel) -> dict[str, "pa.Table"]:
    """By the names of the files of `scenarios/`. Coefficients are standardised, as there."""
    return {
        "inflow_seasonal_stats": _table(STATISTICS, _statistics(description)),
        "inflow_ar_coefficients": _table(COEFFICIENTS, _coefficients(description)),
        "inflow_annual_component": _table(ANNUAL, _annual(description)),
        "noise_openings": _openings(case, noise),
    }


def _statistics(description: InflowDescription) -> Iterator[Row]:
    found = description.statistics
    by_stage = dict(found.before)
    for position, stage_id in enumerate(found.stage_ids):
        given = found.is_given[position]
        by_stage[stage_id] = (
            np.where(given, found.mean_m3s[position], np.nan),
            np.where(given, found.std_m3s[position], np.nan),
        )
    for column, hydro_id in enumerate(found.hydro_ids):
        for stage_id, (mean, std) in sorted(by_stage.items()):
            if not np.isnan(mean[column]):
                yield hydro_id, stage_id, mean[column], std[column]


def _terms(description: InflowDescription) -> Iterator[tuple[int, int, int, TermsRow]]:
    """Column and id of a hydro, stage, and what the stage remembers."""
    rows = dict(description.terms.before)
    rows |= dict(zip(description.statistics.stage_ids, description.terms.stages, strict=True))
    for column, hydro_id in enumerate(description.statistics.hydro_ids):
        for stage_id, row in sorted(rows.items()):
            yield column, hydro_id, stage_id, row


def _coefficients(description: InflowDescription) -> Iterator[Row]:
    for column, hydro_id, stage_id, row in _terms(description):
        values = row.coefficients[:, column]
        used = np.flatnonzero(values)
        for lag in range(1, int(used[-1]) + 2 if len(used) else 1):
            yield hydro_id, stage_id, lag, values[lag - 1]


def _annual(description: InflowDescription) -> Iterator[Row]:
    for column, hydro_id, stage_id, row in _terms(description):
        if row.annual_coefficient[column] != 0.0:
            mean, std = row.annual_mean_m3s[column], row.annual_std_m3s[column]
            yield hydro_id, stage_id, row.annual_coefficient[column], mean, std


def _openings(case: Case, noise: NoiseModel) -> "pa.Table":

    parts = [
        (stage.id, *np.indices(values.shape).reshape(2, -1), values.reshape(-1))
        for stage, values in zip(case.horizon.stages, noise.openings, strict=True)
    ]
    return table_of(
        {
            "stage_id": np.concatenate([np.full(len(values), id_, np.int32) for id_, _, _, values in parts]),
            "opening_index": np.concatenate([opening.astype(np.uint32) for _, opening, _, _ in parts]),
            "entity_index": np.concatenate([entity.astype(np.uint32) for _, _, entity, _ in parts]),
            "value": np.concatenate([values for _, _, _, values in parts]),
        }
    )


def _table(names: Sequence[str], rows: Iterator[Row]) -> "pa.Table":

    columns = np.array(list(rows), np.float64).reshape(-1, len(names)).T
    typed = [column.astype(np.int32) if name in IDS else column for name, column in zip(names, columns, strict=True)]
    return table_of(dict(zip(names, typed, strict=True)))
