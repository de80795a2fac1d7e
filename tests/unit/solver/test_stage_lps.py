"""LPs of backward passes, as they are and in other units: the optima of HiGHS, few pivots, no library.

`make fuzz-stages` does the same with a hundred thousand solves of decks and generated systems.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from stage_lps import Call, record, reference_costs, rescaled, solve_each

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
DECOMP = Path(os.environ.get("COBRE_DECKS", ROOT.parent / "shared" / "decks")) / "decomp_2024_05"
MOST_PIVOTS = 50  # times the median of a study


@pytest.fixture(scope="module", params=["four_regions", "large"])
def calls(request: pytest.FixtureRequest) -> list[Call]:
    recorded = record(EXAMPLES / request.param, 3, 2)
    return recorded[:: max(1, len(recorded) // 6)]


@pytest.mark.parametrize("max_dense_rows", [1000, 0], ids=["dense", "sparse"])
@pytest.mark.parametrize("decades", [0.0, 1.0])
def test_every_solve_is_right_and_short(calls: list[Call], decades: float, max_dense_rows: int) -> None:
    pivots = []
    for number, call in enumerate(calls):
        items = np.arange(0, len(call.chains.realisation_index), 7, dtype=np.int32)
        program = rescaled(call.program, decades, number)
        solved = solve_each(Call(program, call.cuts, call.chains), items, max_dense_rows)
        expected = list(reference_costs(call, items))
        np.testing.assert_allclose([one.objective for one in solved], expected, rtol=1e-7, atol=1e-7)
        assert not any(one.is_by_library for one in solved)
        pivots += [one.pivots for one in solved]
    assert max(pivots) <= MOST_PIVOTS * max(1.0, float(np.median(pivots)))


@pytest.mark.skipif(not DECOMP.is_dir(), reason=f"no deck at {DECOMP}")
def test_trees_of_decomp_need_no_library() -> None:
    """Costs begin at 2e-11. Bound flips went round in circles, and HiGHS solved 13 of these 30 LPs."""
    calls = record(DECOMP, 2, None)
    solved = [one for call in calls for one in solve_each(call, np.zeros(1, np.int32), 100)]
    assert len(solved) >= 20
    assert not any(one.is_by_library for one in solved)
