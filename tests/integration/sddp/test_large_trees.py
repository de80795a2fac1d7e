"""Trees of large LPs start from one basis for each stage: the same bits on any ranks, the same costs as cold starts."""

import pytest
from published_data import DECKS

import cobre
from cobre.sddp.problem.problem import Problem

DECK = DECKS / "decomp_2024_05"


@pytest.mark.skipif(not DECK.is_dir(), reason="the published deck decomp_2024_05 is not here")
def test_shared_basis_changes_pivots_but_no_cost(monkeypatch):
    warm = cobre.train(DECK, iterations=2, threads=1)
    shared = cobre.train(DECK, iterations=2, num_workers=2, backend="shm")
    assert shared.digest == warm.digest
    simulated = cobre.simulate(DECK, warm.policy, threads=1)
    assert cobre.simulate(DECK, warm.policy, num_workers=2, backend="shm").mean_cost == simulated.mean_cost
    monkeypatch.setattr(Problem, "is_large", lambda *_: False)
    cold = cobre.train(DECK, iterations=2, threads=1)
    assert cold.lower_bound == pytest.approx(warm.lower_bound, rel=1e-7)  # other duals are optimal as well
    assert cobre.simulate(DECK, cold.policy, threads=1).mean_cost == pytest.approx(
        simulated.mean_cost, rel=1e-7
    )  # other duals are optimal as well
    assert sum(record.simplex_iterations for record in warm.history) < sum(
        record.simplex_iterations for record in cold.history
    )
