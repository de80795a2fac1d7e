"""Published cases whose stages are not all months, read in place, to the costs that are known for them."""

import os
from pathlib import Path

import pytest

import cobre

ROOT = Path(__file__).resolve().parents[2]
DECKS = Path(os.environ.get("COBRE_PUBLISHED_DECKS", ROOT.parent / "shared" / "decks"))

pytestmark = pytest.mark.skipif(
    not DECKS.is_dir(),
    reason="the published decks are not here: they belong into ../shared/decks, or where COBRE_PUBLISHED_DECKS says",
)


def test_d28_weeks_then_a_month_with_ragged_external_scenarios():
    case = DECKS / "d28-decomp-weekly-monthly"
    trained = cobre.train(case, threads=1)
    simulated = cobre.simulate(case, trained.policy, threads=1)
    assert trained.lower_bound == pytest.approx(684.865_283_295_068_7, abs=1e-6, rel=0.0)
    assert simulated.mean_cost == pytest.approx(630.622_222_2, abs=1e-6, rel=0.0)
