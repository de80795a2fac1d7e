"""Autoregressive terms in standardised form, from files or from a fit."""

from collections.abc import Mapping

import numpy as np

from cobre.core.arrays import MONTHS_PER_YEAR, Flags, Floats
from cobre.core.case import Case
from cobre.core.file_names import INFLOW_ANNUAL_FILE, INFLOW_COEFFICIENTS_FILE
from cobre.records import dataclass
from cobre.stochastic import NoiseModelError
from cobre.stochastic.layout import StageTable


@dataclass(frozen=True, slots=True)
class TermsRow:
    """Terms of one stage or season: coefficients (lag, hydro), and the yearly component per hydro; zero: none.

    `residual_ratio`, per hydro: how far residuals deviate, as a part of the deviation of inflows, by the file or by
    history; NaN is unknown. It counts only if the coefficients make no stationary process.
    """

    coefficients: Floats
    annual_coefficient: Floats
    annual_std_m3s: Floats
    residual_ratio: Floats
    annual_mean_m3s: Floats  # written to results; the base of a stage follows from the means of seasons


@dataclass(frozen=True, slots=True)
class AutoregressiveTerms:
    """Autoregressive terms by stage of the study, by id of earlier stages, and by season if they are fitted."""

    stages: tuple[TermsRow, ...]
    before: Mapping[int, TermsRow]
    by_season: Mapping[int, TermsRow]
    source: str

    @property
    def order(self) -> int:
        """The longest memory, in stages; a yearly component remembers twelve."""
        order = max((row.coefficients.shape[0] for row in self.stages), default=0)
        return max(MONTHS_PER_YEAR, order) if self.has_annual else order

    @property
    def has_annual(self) -> bool:
        """Whether any stage has a yearly component."""
        return any((row.annual_coefficient != 0.0).any() for row in self.stages)

    def has_memory(self) -> Flags:
        """Return per hydro whether it has any term at any stage."""
        rows = [(row.coefficients != 0.0).any(axis=0) | (row.annual_coefficient != 0.0) for row in self.stages]
        return np.asarray(np.array(rows).any(axis=0))


def given_terms(case: Case) -> AutoregressiveTerms:
    """Return the terms given in the tables of coefficients."""
    hydro_ids = [hydro.id for hydro in case.system.hydros]
    columns = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
    annual = StageTable(INFLOW_ANNUAL_FILE, case.scenarios.inflow_annual_component, "hydro_id", columns, hydro_ids)
    coefficients = _GivenCoefficients(case)
    stage_ids = [stage.id for stage in case.horizon.stages]
    rows = {
        stage_id: coefficients.row(stage_id, annual)
        for stage_id in sorted({*stage_ids, *coefficients.by_stage, *annual.stage_ids})
    }
    study = tuple(rows.pop(stage_id) for stage_id in stage_ids)
    return AutoregressiveTerms(study, rows, {}, INFLOW_COEFFICIENTS_FILE)


class _GivenCoefficients:
    """The table of coefficients by stage: coefficients (lag, hydro) and the ratios of residuals; NaN: no row."""

    def __init__(self, case: Case) -> None:
        self._position = {hydro.id: index for index, hydro in enumerate(case.system.hydros)}
        self._order = _longest_lag(case)
        self.by_stage: dict[int, tuple[Floats, Floats]] = {}
        table = case.scenarios.inflow_ar_coefficients
        if table is not None:
            names = ("hydro_id", "stage_id", "lag", "coefficient", "residual_std_ratio")
            unknown = np.full(len(table["lag"]), np.nan)
            for row in zip(*(table.get(name, unknown).tolist() for name in names), strict=True):
                self._add(*row)

    def _add(self, hydro_id: int, stage_id: int, lag: int, value: float, ratio: float) -> None:
        where = f"hydro_id {hydro_id}, stage_id {stage_id}, lag {lag}"
        if hydro_id not in self._position or not np.isfinite(value):
            raise NoiseModelError(INFLOW_COEFFICIENTS_FILE, where, "needs the id of a hydro and a finite coefficient")
        coefficients, ratios = self.by_stage.setdefault(stage_id, self._empty())
        column = self._position[hydro_id]
        if not np.isnan(coefficients[lag - 1, column]):
            raise NoiseModelError(INFLOW_COEFFICIENTS_FILE, where, "two rows; keep one")
        coefficients[lag - 1, column] = value
        ratios[column] = ratio

    def _empty(self) -> tuple[Floats, Floats]:
        hydros = len(self._position)
        return np.full((self._order, hydros), np.nan), np.full(hydros, np.nan)

    def row(self, stage_id: int, annual: StageTable) -> TermsRow:
        """Return all coefficients of a stage."""
        coefficients, ratios = self.by_stage.get(stage_id, self._empty())
        coefficients = np.nan_to_num(coefficients)
        yearly = annual.over([stage_id], (0.0, 0.0, 0.0))[0]
        is_white = ~(coefficients != 0.0).any(axis=0) & (yearly[0] == 0.0)
        return TermsRow(coefficients, yearly[0], yearly[2], np.where(is_white, 1.0, ratios), yearly[1])


def _longest_lag(case: Case) -> int:
    table = case.scenarios.inflow_ar_coefficients
    if table is None or not len(table["lag"]):
        return 0
    if int(table["lag"].min()) < 1:
        raise NoiseModelError(INFLOW_COEFFICIENTS_FILE, "lag", "lags count from 1")
    return int(table["lag"].max())
