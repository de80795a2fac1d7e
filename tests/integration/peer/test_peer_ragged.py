"""Ragged external scenarios through cobre-python: bounds, and the inflows of simulated trajectories."""

import pytest
from crafted_case import CraftedCase, Period, write_crafted
from peer import peer_python, peer_tables

import cobre
import cobre.results
import cobre.run

COUNTS = ((1, 2, 3, 5), (3, 1, 2, 2), (1, 1, 4), (2, 5, 1, 3), (4, 4, 4))
SIMULATION = {"selection": {"method": "sampled", "num_scenarios": 8}}


@pytest.fixture(autouse=True)
def _peer():
    peer_python()


def ragged(counts: tuple[int, ...]) -> CraftedCase:
    months = range(1, len(counts) + 1)
    external = [
        (stage, scenario, 0, 30.0 + 17.0 * ((3 * stage + 5 * scenario) % 7))
        for stage, count in enumerate(counts)
        for scenario in range(count)
    ]
    return CraftedCase(
        periods=[Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", openings=4) for m in months],
        inflow={(0, stage): (60.0, 20.0) for stage in range(len(counts))},
        external=external,
        source={"seed": 7, "inflow": {"scheme": "external"}},
        load_mw=150.0,
        rules=({"type": "iteration_limit", "limit": 20},),
        simulation=SIMULATION,
    )


INFLOWS = ("scenario_id", "stage_id", "hydro_id", "incremental_inflow_m3s")


def test_ragged_bounds_and_trajectories_match_peer(tmp_path):
    folders = [write_crafted(tmp_path / str(number), ragged(counts)) for number, counts in enumerate(COUNTS)]
    for counts, folder, theirs in zip(COUNTS, folders, peer_tables(folders, {"hydros": INFLOWS}), strict=True):
        trained = cobre.train(folder, threads=1)
        assert trained.history[0].lower_bound == pytest.approx(theirs["bounds"][0][0], rel=1e-9), counts
        assert trained.lower_bound == pytest.approx(theirs["bounds"][-1][0], rel=1e-6), counts
        cobre.run.run(folder, folder / "run", threads=1)
        table = cobre.results.load_simulation_arrow(folder / "run", "hydros")
        ours = {row[:3]: row[3] for row in zip(*(table[name].to_pylist() for name in INFLOWS), strict=True)}
        for row in theirs["hydros"]:
            assert ours[tuple(row[:3])] == pytest.approx(row[3], rel=1e-9), (counts, row)
