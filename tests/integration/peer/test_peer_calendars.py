"""Calendars other than months through cobre-python: the inflows and lags of its simulations, where its rule is its own.

It errs in three places: bounds (its cuts take the inflow of each stage for lag 1, which test_published_calendars.py
proves), statistics of lags inside a season, and the first stages after a change of resolution.
"""

from dataclasses import replace

import pytest
from calendar_cases import CASES
from crafted_case import write_crafted
from peer import peer_python, peer_tables

import cobre
import cobre.run

# Calendars that it simulates as documented; statistics are equal in all stages, so its second error has no effect.
ALIKE = (
    "weeks of a month",
    "two lags",
    "weeks across months",
    "days before that nobody knows",
    "quarters",
    "weeks after ISO, 53 of them",
)
SIMULATION = {"selection": {"method": "sampled", "num_scenarios": 3}}


@pytest.fixture(autouse=True)
def _peer():
    peer_python()


LAGS = ("scenario_id", "stage_id", "hydro_id", "lag_index", "inflow_m3s")


def test_simulated_lags_and_inflows_match_peer(tmp_path):
    one = ({"type": "iteration_limit", "limit": 1},)
    folders = [
        write_crafted(tmp_path / str(number), replace(CASES[name][0], simulation=SIMULATION, rules=one))
        for number, name in enumerate(ALIKE)
    ]
    for name, folder, theirs in zip(ALIKE, folders, peer_tables(folders, {"inflow_lags": LAGS}), strict=True):
        cobre.run.run(folder, folder / "run", threads=1)
        table = cobre.results.load_simulation_arrow(folder / "run", "inflow_lags")
        lags = {row[:4]: row[4] for row in _rows(table)}
        assert theirs["inflow_lags"], name
        for row in theirs["inflow_lags"]:
            assert lags[tuple(row[:4])] == pytest.approx(row[4], rel=1e-9), (name, row)


def _rows(table):
    return zip(*(table[name].to_pylist() for name in LAGS), strict=True)
