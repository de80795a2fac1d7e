"""The inflow model of an official deck: 151 plants, 87 years, as cobre-python estimated it."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from published_data import DECKS

import cobre
from cobre.io.case import load_case
from cobre.stochastic.inflows import describe_inflows
from cobre.stochastic.model import build_noise_model

FITTED = DECKS / "pmo_2018_fitted"
MONTHS = 12

pytestmark = pytest.mark.skipif(
    not FITTED.is_dir(),
    reason="the official deck is not here: it belongs into ../shared/decks, or where COBRE_DECKS says",
)


@pytest.fixture(scope="module")
def deck():
    return load_case(DECKS / "pmo_2018")


@pytest.fixture(scope="module")
def description(deck):
    return describe_inflows(deck)


def by_stage(name: str, hydro_ids, *columns: str) -> dict:
    """Return rows of a fitted table by hydro (as a column) and stage."""
    table = pq.read_table(FITTED / f"{name}.parquet").to_pydict()
    place = {hydro_id: index for index, hydro_id in enumerate(hydro_ids)}
    keys = [(place[hydro], stage) for hydro, stage in zip(table["hydro_id"], table["stage_id"], strict=True)]
    found: dict = {}
    for key, *values in zip(keys, *(table[column] for column in columns), strict=True):
        found.setdefault(key, []).append(tuple(values))
    return found


def test_no_season_of_a_plant_differs(description):
    hydro_ids = description.statistics.hydro_ids
    expected = by_stage("inflow_ar_coefficients", hydro_ids, "lag", "coefficient")
    different = []
    for stage in range(MONTHS):
        row = description.terms.stages[stage].coefficients
        for column in range(len(hydro_ids)):
            theirs = np.zeros(len(row))
            for lag, value in expected.get((column, stage), ()):
                theirs[lag - 1] = value
            if np.abs(row[:, column] - theirs).max() > 1e-10:
                different.append((hydro_ids[column], stage))
    assert len(hydro_ids) * MONTHS == 1812
    assert different == []


def test_statistics_match_deck(description):
    statistics = description.statistics
    rows = by_stage("inflow_seasonal_stats", statistics.hydro_ids, "mean_m3s", "std_m3s")
    for (column, stage), [(mean, std)] in rows.items():
        assert statistics.mean_m3s[stage, column] == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert statistics.std_m3s[stage, column] == pytest.approx(std, rel=1e-12, abs=1e-12)


def test_d12_unobserved_lags_give_published_cost():
    """Check d12: an estimated model with a yearly component reads lags 3 to 12, which no window covers."""
    result = cobre.train(DECKS / "d12-par-annual", threads=1)
    assert result.lower_bound == pytest.approx(16_600_569_457.532_47, rel=1e-6)
    [warning] = [text for text in result.warnings if "taken as 0" in text]
    assert "hydro_id 0 (H0), 1 (H1)" in warning
    assert "lag 3, 4, 5, 6, 7, 8, 9, 10, 11, 12" in warning


def test_noise_model_notes_of_deck(deck):
    notes = [str(note) for note in build_noise_model(deck).notes]
    assert any("hydro_id 105 (XINGO): seasons 0, 1, 2" in note and "the same whole number" in note for note in notes)
    assert any("hydro_id 49 (JORDAO)" in note and "negative" in note for note in notes)
    assert any("not positive semidefinite" in note for note in notes)
    assert not any("stationary" in note for note in notes)
