"""Planes that were fitted to geometries, and how far they are from the exact production function."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cobre.core.case import Case
from cobre.core.entities import is_in_service
from cobre.io.storage.arrow_columns import table_of
from cobre.sddp.hydro_models.fpha_fitting import Fit
from cobre.sddp.hydro_models.geometry import geometry_by_hydro
from cobre.sddp.resolved.production import ProductionResolver

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, np.ndarray]
PLANES = ("gamma_0", "gamma_v", "gamma_q", "gamma_s")


def fpha_tables(case: Case) -> dict[str, "pa.Table"]:
    """Points and planes of every plant in every stage in which its planes are fitted."""
    fits = list(_fits(case))
    return {
        "fpha_deviation_points": _table(_points(), [_points(*fit) for fit in fits]),
        "fpha_hyperplanes": _table(_planes(), [_planes(*fit) for fit in fits]),
    }


def _fits(case: Case) -> Iterator[tuple[int, int, Fit]]:
    resolver = ProductionResolver(case, geometry_by_hydro(case.production.geometry))
    for hydro in case.system.hydros:
        for stage in case.horizon.stages:
            fit = resolver.fit(hydro, stage) if is_in_service(hydro, stage.id) else None
            if fit is not None:
                yield hydro.id, stage.id, fit


NOTHING = Fit(np.zeros((1, 4)), np.zeros(0), np.zeros(0), np.zeros(0))


def _points(hydro_id: int = 0, stage_id: int = 0, fit: Fit = NOTHING) -> Columns:
    """The points of the grid, nothing spilled; `relative` is a share of the most power at any of them."""
    order = np.lexsort((fit.turbined_m3s, fit.volume_hm3))
    exact, fitted = fit.exact_mw[order], fit.fitted_mw()[order]
    most = exact.max(initial=0.0)
    return {
        "hydro_id": np.full(len(exact), hydro_id, np.int32),
        "stage_id": np.full(len(exact), stage_id, np.int32),
        "v": fit.volume_hm3[order],
        "q": fit.turbined_m3s[order],
        "fph_exact": exact,
        "fpha_fitted": fitted,
        "deviation": fitted - exact,
        "relative": np.abs(fitted - exact) / most if most > 0.0 else np.zeros(len(exact)),
    }


def _planes(hydro_id: int = 0, stage_id: int = 0, fit: Fit = NOTHING) -> Columns:
    """As system/fpha_hyperplanes.parquet has them."""
    count = len(fit.planes) if len(fit.exact_mw) else 0
    return {
        "hydro_id": np.full(count, hydro_id, np.int32),
        "stage_id": np.full(count, stage_id, np.int32),
        "plane_id": np.arange(count, dtype=np.int32),
        **{name: fit.planes[:count, at] for at, name in enumerate(PLANES)},
        "kappa": np.ones(count),
    }


def _table(empty: Columns, parts: list[Columns]) -> "pa.Table":

    return table_of({name: np.concatenate([empty[name], *(part[name] for part in parts)]) for name in empty})
