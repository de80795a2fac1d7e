"""Exports of a study (`exports` in config.json): hydro models, the noise model and visited states.

OUT/states/states.parquet                the state that entered each stage, at every trial point of training
OUT/stochastic/*.parquet                 the inflow model and the openings, in the formats of a case, with
                                         correlation.json
OUT/hydro_models/fpha_*.parquet          fitted planes, and their deviations from the exact production function
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.arrays import Floats, Indices
from cobre.core.case import Case
from cobre.core.config import ExportsConfig
from cobre.core.file_names import HYDRO_MODELS, STATES, STOCHASTIC
from cobre.io.output.results import write_results
from cobre.io.saving.documents import correlation_document
from cobre.io.storage.arrow_columns import column_of, table_of
from cobre.io.storage.atomic import check_writable
from cobre.io.storage.confined import remove_file
from cobre.io.storage.stored_json import write_json
from cobre.policy.object import state_names
from cobre.sddp.hydro_models.fpha_fitting import Fit
from cobre.sddp.hydro_models.reservoir import geometry_by_hydro
from cobre.sddp.problem.problem import PreparedStudy
from cobre.sddp.resolved.hydro import ProductionResolver
from cobre.sddp.training.visited_states import VisitedStates
from cobre.stochastic.inflows import InflowDescription, describe_inflows
from cobre.stochastic.model import NoiseModel
from cobre.stochastic.par.terms import TermsRow
from cobre.stochastic.sampling import training_libraries

if TYPE_CHECKING:
    import pyarrow as pa


# Planes that were fitted to geometries, and their deviations from the exact production function.

Columns = dict[str, np.ndarray]
PLANES = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")


def fpha_tables(case: Case) -> dict[str, "pa.Table"]:
    """Return the points and planes of all fits, by plant and stage."""
    fits = list(_fits(case))
    return {
        "fpha_deviation_points": _table(_points(), [_points(*fit) for fit in fits]),
        "fpha_hyperplanes": _table(_planes(), [_planes(*fit) for fit in fits]),
    }


def _fits(case: Case) -> Iterator[tuple[int, int, Fit]]:
    resolver = ProductionResolver(case, geometry_by_hydro(case.production.geometry))
    for hydro in case.system.hydros:
        by_stage = {stage.id: fit for fit, stages in resolver.fits(hydro) for stage in stages}
        yield from ((hydro.id, stage_id, by_stage[stage_id]) for stage_id in sorted(by_stage))


EMPTY_FIT = Fit(np.zeros((1, 4)), np.zeros(0), np.zeros(0), np.zeros(0))


def _points(hydro_id: int = 0, stage_id: int = 0, fit: Fit = EMPTY_FIT) -> Columns:
    """Return the points of the grid, without spillage; `relative` is a share of the largest power at any of them."""
    order = np.lexsort((fit.turbined_m3s, fit.volume_hm3))
    exact, fitted = fit.exact_mw[order], fit.fitted_mw()[order]
    largest = exact.max(initial=0.0)
    return {
        "hydro_id": np.full(len(exact), hydro_id, np.int32),
        "stage_id": np.full(len(exact), stage_id, np.int32),
        "v": fit.volume_hm3[order],
        "q": fit.turbined_m3s[order],
        "fph_exact": exact,
        "fpha_fitted": fitted,
        "deviation": fitted - exact,
        "relative": np.abs(fitted - exact) / largest if largest > 0.0 else np.zeros(len(exact)),
    }


def _planes(hydro_id: int = 0, stage_id: int = 0, fit: Fit = EMPTY_FIT) -> Columns:
    """Return planes in the columns of system/fpha_hyperplanes.parquet."""
    count = len(fit.planes) if len(fit.exact_mw) else 0
    return {
        "hydro_id": np.full(count, hydro_id, np.int32),
        "stage_id": np.full(count, stage_id, np.int32),
        "plane_id": np.arange(count, dtype=np.int32),
        **{name: fit.planes[:count, at] for at, name in enumerate(PLANES)},
        "kappa": np.ones(count),
    }


def _table(empty: Columns, fits: list[Columns]) -> "pa.Table":
    return table_of({name: np.concatenate([empty[name], *(columns[name] for columns in fits)]) for name in empty})


# The inflow model and the openings, as files of a case.

Rows = list[NDArray[Any]]  # of a table, column by column
STATISTICS = ("hydro_id", "stage_id", "mean_m3s", "std_m3s")
COEFFICIENTS = ("hydro_id", "stage_id", "lag", "coefficient")
ANNUAL = ("hydro_id", "stage_id", "annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
IDS = ("hydro_id", "stage_id", "lag")


def write_stochastic(folder: Path, case: Case, noise: NoiseModel) -> None:
    """Write the inflow model and the openings, and correlation.json where anything is correlated."""
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
    """Return tables by the names of files in `scenarios/`. Coefficients are standardised, as there."""
    return {
        "inflow_seasonal_stats": _noise_table(STATISTICS, _statistics(description)),
        "inflow_ar_coefficients": _noise_table(COEFFICIENTS, _coefficients(description)),
        "inflow_annual_component": _noise_table(ANNUAL, _annual(description)),
        "noise_openings": _openings(case, noise),
    }


def _statistics(description: InflowDescription) -> Rows:
    statistics = description.statistics
    by_stage = dict(statistics.before)
    for position, stage_id in enumerate(statistics.stage_ids):
        is_given = statistics.is_given[position]
        by_stage[stage_id] = (
            np.where(is_given, statistics.mean_m3s[position], np.nan),
            np.where(is_given, statistics.std_m3s[position], np.nan),
        )
    values = np.array([by_stage[stage_id] for stage_id in sorted(by_stage)])
    mean, std = (values.reshape(-1, 2, len(statistics.hydro_ids))[:, index].T for index in range(2))
    hydro, stage = np.nonzero(~np.isnan(mean))
    hydro_ids, stage_ids = np.array(statistics.hydro_ids), np.array(sorted(by_stage))
    return [hydro_ids[hydro], stage_ids[stage], mean[hydro, stage], std[hydro, stage]]


def _terms(description: InflowDescription) -> tuple[Indices, Indices, list[TermsRow]]:
    """Return ids of the hydros, ids of the stages in order, and the terms of each stage."""
    rows = dict(description.terms.before)
    rows |= dict(zip(description.statistics.stage_ids, description.terms.stages, strict=True))
    ids = sorted(rows)
    return np.array(description.statistics.hydro_ids, int), np.array(ids, int), [rows[stage_id] for stage_id in ids]


def _coefficients(description: InflowDescription) -> Rows:
    """Return coefficients by hydro and stage, up to the last lag that is not zero."""
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


def _noise_table(names: Sequence[str], columns: Rows) -> "pa.Table":
    typed = [column.astype(np.int32) if name in IDS else column for name, column in zip(names, columns, strict=True)]
    return table_of(dict(zip(names, typed, strict=True)))


# The exports that a case requests.


def write_study_exports(output: Path, study: PreparedStudy) -> None:
    """Write the exports that do not depend on training: the noise model, and fits of production planes."""
    exports: ExportsConfig = study.case.config.exports
    if exports.stochastic:
        write_stochastic(output / STOCHASTIC, study.case, study.noise)
    if exports.fpha_deviation_points:
        write_results(output / HYDRO_MODELS, fpha_tables(study.case), {})


def write_state_export(output: Path, study: PreparedStudy, visited: VisitedStates, first_iteration: int = 1) -> None:
    """Write the visited states if the case requests them; see `states_table`."""
    if study.case.config.exports.states:
        table = states_table(study, list(visited.tables()), first_iteration)
        write_results(output / STATES, {"states": table}, {})


def states_table(study: PreparedStudy, visited: Sequence[Floats], first_iteration: int = 1) -> "pa.Table":
    """Return a row for each iteration, stage and forward pass, with a column for each entry of the state.

    visited: by iteration, forward passes x (stages x entries), as training keeps them.
    """
    stage_ids = [stage.id for stage in study.case.horizon.stages]
    names = state_names(study)
    shapes = [(number, len(points)) for number, points in enumerate(visited, start=first_iteration)]
    by_stage = [points.reshape(len(points), len(stage_ids), len(names)).transpose(1, 0, 2) for points in visited]
    values = np.concatenate([np.zeros((0, len(names))), *(points.reshape(-1, len(names)) for points in by_stage)])
    columns = {
        "iteration": np.repeat([n for n, _ in shapes], [len(stage_ids) * paths for _, paths in shapes]),
        "stage_id": np.concatenate([np.zeros(0), *(np.repeat(stage_ids, paths) for _, paths in shapes)]),
        "forward_pass": np.concatenate(
            [np.zeros(0), *(np.tile(np.arange(paths), len(stage_ids)) for _, paths in shapes)]
        ),
    }
    table = {name: column_of(np.asarray(column).astype(np.int32)) for name, column in columns.items()}
    return table_of(table | {name: column_of(values[:, at]) for at, name in enumerate(names)})
