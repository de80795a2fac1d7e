"""The inflow model and the openings as files that a case could hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Indices
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

Rows = list[NDArray[Any]]  # of a table, column by column
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
        write_json(file, correlation_document(correlation), is_compact=True)
    write_results(folder, stochastic_tables(case, description, noise), {})


def stochastic_tables(case: Case, description: InflowDescription, noise: NoiseModel) -> dict[str, "pa.Table"]:
    """By the names of the files of `scenarios/`. Coefficients are standardised, as there."""
    return {
        "inflow_seasonal_stats": _table(STATISTICS, _statistics(description)),
        "inflow_ar_coefficients": _table(COEFFICIENTS, _coefficients(description)),
        "inflow_annual_component": _table(ANNUAL, _annual(description)),
        "noise_openings": _openings(case, noise),
    }


def _statistics(description: InflowDescription) -> Rows:
    found = description.statistics
    by_stage = dict(found.before)
    for position, stage_id in enumerate(found.stage_ids):
        given = found.is_given[position]
        by_stage[stage_id] = (
            np.where(given, found.mean_m3s[position], np.nan),
            np.where(given, found.std_m3s[position], np.nan),
        )
    values = np.array([by_stage[stage_id] for stage_id in sorted(by_stage)])
    mean, std = (values.reshape(-1, 2, len(found.hydro_ids))[:, part].T for part in range(2))
    hydro, stage = np.nonzero(~np.isnan(mean))
    return [np.array(found.hydro_ids)[hydro], np.array(sorted(by_stage))[stage], mean[hydro, stage], std[hydro, stage]]


def _terms(description: InflowDescription) -> tuple[Indices, Indices, list[TermsRow]]:
    """Ids of the hydros, of the stages in order, and what these remember."""
    rows = dict(description.terms.before)
    rows |= dict(zip(description.statistics.stage_ids, description.terms.stages, strict=True))
    ids = sorted(rows)
    return np.array(description.statistics.hydro_ids, int), np.array(ids, int), [rows[stage_id] for stage_id in ids]


def _coefficients(description: InflowDescription) -> Rows:
    """Up to the last lag that counts, by hydro and stage."""
    hydro_ids, stage_ids, rows = _terms(description)
    depth = max((len(row.coefficients) for row in rows), default=0)
    values = np.zeros((len(hydro_ids), len(stage_ids), depth))
    for number, row in enumerate(rows):
        values[:, number, : len(row.coefficients)] = row.coefficients.T
    counts = np.flip(np.logical_or.accumulate(np.flip(values != 0.0, axis=2), axis=2), axis=2)
    hydro, stage, lag = np.nonzero(counts)
    return [hydro_ids[hydro], stage_ids[stage], lag + 1, values[hydro, stage, lag]]


def _annual(description: InflowDescription) -> Rows:
    hydro_ids, stage_ids, rows = _terms(description)
    names = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
    parts = [np.array([getattr(row, name) for row in rows]).reshape(len(rows), -1).T for name in names]
    hydro, stage = np.nonzero(parts[0])
    return [hydro_ids[hydro], stage_ids[stage], *(part[hydro, stage] for part in parts)]


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


def _table(names: Sequence[str], columns: Rows) -> "pa.Table":
    typed = [column.astype(np.int32) if name in IDS else column for name, column in zip(names, columns, strict=True)]
    return table_of(dict(zip(names, typed, strict=True)))
