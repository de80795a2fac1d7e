"""Trainings of both peers on December 2025, evaluated in our LPs: values agree; the rest is not unique."""

import subprocess
import sys

import pytest
from peer import ROOT, TIMEOUT_S, novomodelo_python, peer_python
from published_data import DECKS

sys.path.insert(0, str(ROOT / "benchmarks"))

import simulated_tables
from cobre.io.case import load_case
from cobre.study.preparation.prepare import prepare
from first_bounds import (
    MODULES,
    CutLine,
    compare,
    copy_deck,
    overrides,
    relative,
    run_peer,
    text_of,
)

PEERS = {"pmo_2025_12_first_12": peer_python, "pmo_2025_12_v19_first_12": novomodelo_python}
SAME = {"pmo_2025_12_first_12": 5e-8, "pmo_2025_12_v19_first_12": 2e-9}  # the peers solve scaled LPs to 1e-7
ITERATIONS = 1


def test_both_slopes_are_valid_at_a_kink():
    line = CutLine(1, 0, 10.0, 10.0, "X", their_slope=-3.0, our_slope=-2.0, left=-4.0, right=-1.0)
    assert line.is_kink()
    outside = CutLine(1, 0, 10.0, 10.0, "X", their_slope=-5.0, our_slope=-2.0, left=-4.0, right=-1.0)
    assert not outside.is_kink()


@pytest.mark.long
@pytest.mark.timeout(6 * TIMEOUT_S)
@pytest.mark.parametrize("deck", PEERS)
def test_lp_values_of_a_training_match_peers(tmp_path, deck):
    if not (DECKS / deck).exists():
        pytest.skip(f"the deck {deck} is not here: COBRE_DECKS says where it is")
    python, case, settings = PEERS[deck](), tmp_path / "case", overrides(ITERATIONS, scenarios=2)
    version = copy_deck(DECKS / deck, case)
    run_peer(python, MODULES[version], case, tmp_path / "peer", settings)
    found = compare(prepare(load_case(case, settings)), tmp_path / "peer")
    print(text_of(found))
    assert len(found.cuts) == len(found.forward) == 11 * ITERATIONS
    for theirs, ours in (*found.bounds, *found.paths):
        assert abs(relative(ours, theirs)) < SAME[deck]
    for line in (*found.cuts, *found.forward):
        assert abs(line.difference) < SAME[deck], line
    assert [line for line in found.cuts if not line.is_kink()] == []
    # Volumes of the myopic pass do differ: that is why first bounds do.
    assert max(line.moved_hm3 for line in found.forward) > 10.0
    largest, outside = found.openings
    assert largest < 1e-7
    assert outside < 2e-9
    check_simulation(case, tmp_path / "peer", tmp_path / "simulated")


def check_simulation(case, peer, output):
    """Simulate its policy on the same scenarios: compare data-only columns, and costs from equal states."""
    command = [sys.executable, "-m", "cobre.cli", "simulate", case, "--policy", peer / "policy", "--output", output]
    options = ["--scenarios", "2", "--workers", "1", "--threads", "1", "--no-report", "--quiet"]
    subprocess.run([*map(str, command), *options], check=True, timeout=TIMEOUT_S)
    columns, costs = simulated_tables.compare(peer, output)
    given = [column for column in columns if column.is_given]
    assert len(given) == sum(map(len, simulated_tables.GIVEN.values()))
    assert [column for column in given if column.whole > 1e-8 or column.nulls] == []
    first = [cost for cost in costs if cost.stage == 0]
    assert len(first) == 2
    # Inflows differ in the tenth digit, and a m3/s of a negative one costs 40 million $ a month.
    assert [cost for cost in first if abs(cost.difference) > 2e-7 or cost.apart_hm3 > 1e-9] == []
