"""Autoregressive terms in standardised form: what the files say, or what a fit found."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import Case
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.stage_tables import StageTable

Floats = NDArray[np.float64]

COEFFICIENTS_FILE = "scenarios/inflow_ar_coefficients.parquet"
ANNUAL_FILE = "scenarios/inflow_annual_component.parquet"
MONTHS = 12


@dataclass(frozen=True, slots=True)
class TermsRow:
    """Of one stage or season: coefficients (lag, hydro), and the yearly component per hydro; zero: none."""

    coefficients: Floats
    annual_coefficient: Floats
    annual_std_m3s: Floats


@dataclass(frozen=True, slots=True)
class AutoregressiveTerms:
    """Of every study stage; of stages before the study by id; of seasons by position, where a fit knows them."""

    stages: tuple[TermsRow, ...]
    before: Mapping[int, TermsRow]
    by_season: Mapping[int, TermsRow]
    source: str

    @property
    def order(self) -> int:
        """The longest memory, in stages; a yearly component remembers twelve."""
        order = max((row.coefficients.shape[0] for row in self.stages), default=0)
        return max(MONTHS, order) if self.has_annual else order

    @property
    def has_annual(self) -> bool:
        """Whether any stage has a yearly component."""
        return any((row.annual_coefficient != 0.0).any() for row in self.stages)

    def has_memory(self) -> NDArray[np.bool_]:
        """Per hydro: whether it has any term at any stage."""
        rows = [(row.coefficients != 0.0).any(axis=0) | (row.annual_coefficient != 0.0) for row in self.stages]
        return np.asarray(np.array(rows).any(axis=0))


def given_terms(case: Case) -> AutoregressiveTerms:
    """What the tables of coefficients say."""
    hydro_ids = [hydro.id for hydro in case.system.hydros]
    columns = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
    annual = StageTable(ANNUAL_FILE, case.scenarios.inflow_annual_component, "hydro_id", columns, hydro_ids)
    coefficients = _given_coefficients(case)
    stage_ids = [stage.id for stage in case.horizon.stages]
    empty = np.zeros((_longest_lag(case), len(hydro_ids)))
    rows = {
        stage_id: _row(coefficients.get(stage_id, empty), annual, stage_id)
        for stage_id in sorted({*stage_ids, *coefficients, *annual.stage_ids})
    }
    study = tuple(rows.pop(stage_id) for stage_id in stage_ids)
    return AutoregressiveTerms(study, rows, {}, COEFFICIENTS_FILE)


def _row(coefficients: Floats, annual: StageTable, stage_id: int) -> TermsRow:
    yearly = annual.over([stage_id], (0.0, 0.0, 0.0))[0]
    return TermsRow(np.nan_to_num(coefficients), yearly[0], yearly[2])


def _given_coefficients(case: Case) -> dict[int, Floats]:
    """By stage id; NaN where there is no row."""
    table = case.scenarios.inflow_ar_coefficients
    found: dict[int, Floats] = {}
    if table is None:
        return found
    position = {hydro.id: index for index, hydro in enumerate(case.system.hydros)}
    order = _longest_lag(case)
    columns = [table[name].tolist() for name in ("hydro_id", "stage_id", "lag", "coefficient")]
    for hydro_id, stage_id, lag, value in zip(*columns, strict=True):
        where = f"hydro_id {hydro_id}, stage_id {stage_id}, lag {lag}"
        if hydro_id not in position or not np.isfinite(value):
            raise NoiseModelError(COEFFICIENTS_FILE, where, "needs the id of a hydro and a finite coefficient")
        target = found.setdefault(stage_id, np.full((order, len(position)), np.nan))
        if not np.isnan(target[lag - 1, position[hydro_id]]):
            raise NoiseModelError(COEFFICIENTS_FILE, where, "two rows; give one")
        target[lag - 1, position[hydro_id]] = value
    return found


def _longest_lag(case: Case) -> int:
    table = case.scenarios.inflow_ar_coefficients
    if table is None or not len(table["lag"]):
        return 0
    if int(table["lag"].min()) < 1:
        raise NoiseModelError(COEFFICIENTS_FILE, "lag", "lags count from 1")
    return int(table["lag"].max())
