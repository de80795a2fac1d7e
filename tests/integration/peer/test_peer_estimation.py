"""Inflow models estimated by cobre-python and by Cobre from the same history: every number of them."""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from history_case import MONTHS, series, write_history_case
from peer import TIMEOUT_S, peer_python

from cobre.io.case import load_case
from cobre.stochastic.inflows import describe_inflows
from cobre.stochastic.model import build_noise_model

RUN_ALL = """
import cobre, json, sys
found = {}
scenarios = {"simulation.enabled": True, "simulation.selection": {"method": "sampled", "num_scenarios": 3}}
for folder in sys.argv[1:]:
    try:
        cobre.run.run(folder, folder + "_out", threads=1, config_overrides=scenarios)
        table = cobre.results.load_simulation_arrow(folder + "_out", "hydros")
        names = ("scenario_id", "stage_id", "hydro_id", "inflow_m3s")
        found[folder] = list(zip(*(table[name].to_pylist() for name in names)))
    except Exception as error:
        found[folder] = str(error)
print(json.dumps(found))
"""
ANNUAL = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
YEARS = np.arange(40)
IMPOSSIBLE = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.9], [0.1, 0.9, 1.0]]
GIVEN = [(hydro, stage, 100.0, 20.0) for hydro in range(3) for stage in range(MONTHS)]
TERMS = [(hydro, stage, 1, 0.4) for hydro in range(3) for stage in range(MONTHS)]


def with_season(
    years: int, seed: int, month: int, hydro: int, change: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    values = series(years, 3, seed)
    values[:, month, hydro] = change(values[:, month, hydro])
    return values


def later(years: int) -> np.ndarray:
    """Return a history in which the third plant begins `years` later."""
    values = series(40, 3, 5)
    values[:years, :, 2] = np.nan
    return values


def until(months: int, values: np.ndarray) -> np.ndarray:
    """Return a history that ends within its last year."""
    values[-1, months:] = np.nan
    return values


CASES: dict[str, dict] = {
    "forty years": {"values": series(40, 3, 1)},
    "twenty years share one correlation": {"values": series(20, 3, 2)},
    "thirty years, one pair too few in January": {"values": series(30, 3, 3)},
    "a plant with a shorter history": {"values": later(9)},
    "a plant with too short a history": {"values": later(12)},
    "strong memory, orders that come down": {"values": series(40, 3, 11, phi=0.9)},
    "orders up to twelve": {"values": series(40, 2, 12, phi=0.8), "estimation": {"max_order": 12}},
    "order one at most": {"values": series(40, 2, 13, phi=0.8), "estimation": {"max_order": 1}},
    "a constant season": {"values": with_season(40, 6, 2, 0, lambda old: np.full(40, 50.3))},
    "a season constant up to rounding": {
        "values": with_season(40, 6, 2, 0, lambda old: 50.3 + np.where(YEARS % 2, 0.9e-6, 0.0))
    },
    "a saturated season": {"values": with_season(40, 7, 3, 1, lambda old: np.where(YEARS < 21, 10.4, old))},
    "half is not saturated": {"values": with_season(40, 7, 3, 1, lambda old: np.where(YEARS < 20, 10.4, old))},
    "saturated at a half": {"values": with_season(40, 7, 3, 1, lambda old: np.where(YEARS < 21, 10.5, old))},
    "saturated, few years": {"values": with_season(20, 8, 4, 1, lambda old: np.where(YEARS[:20] < 12, 10.4, old))},
    "negative before saturated": {
        "values": with_season(40, 9, 5, 2, lambda old: np.where(YEARS < 5, -3.0 - YEARS, 15.2))
    },
    "a yearly component": {
        "values": series(40, 2, 14, phi=0.7),
        "estimation": {"order_selection": "pacf_annual", "max_order": 3},
    },
    "a yearly component, few years": {
        "values": series(20, 2, 15, phi=0.7),
        "estimation": {"order_selection": "pacf_annual"},
    },
    "a yearly component, a history that ends in October": {
        "values": until(10, series(40, 3, 21, phi=0.8)),
        "estimation": {"order_selection": "pacf_annual"},
    },
    "a yearly component, seasons that lose all lags": {
        "values": until(11, series(30, 12, 22, phi=0.05)),
        "estimation": {"order_selection": "pacf_annual"},
    },
    "a yearly component, two years": {"values": series(2, 3, 5), "estimation": {"order_selection": "pacf_annual"}},
    "a yearly component, two years and a January": {
        "values": until(1, series(3, 3, 5)),
        "estimation": {"order_selection": "pacf_annual", "max_order": 1},
    },
    "years that are alike": {
        "values": np.round(10.0 + 2.0 * np.random.default_rng(3).normal(size=(40, MONTHS, 2)), 2),
        "estimation": {"order_selection": "pacf_annual", "max_order": 2},
    },
    "statistics are given": {"values": series(40, 3, 16), "statistics": GIVEN},
    "coefficients are given": {"values": series(20, 3, 17), "coefficients": TERMS},
    "an impossible correlation": {"values": series(40, 3, 18), "correlation": IMPOSSIBLE},
    "an impossible correlation without history": {
        "values": np.full((2, MONTHS, 3), np.nan),
        "statistics": GIVEN,
        "correlation": IMPOSSIBLE,
    },
}


@pytest.fixture(scope="module")
def both():
    """Return, by case name, its folder, cobre-python's model, and its simulated inflows."""
    python = peer_python()
    with tempfile.TemporaryDirectory() as parent:
        folders = {name: Path(parent) / f"case_{number}" for number, name in enumerate(CASES)}
        for name, folder in folders.items():
            write_history_case(folder, **CASES[name])
        command = [python, "-I", "-c", RUN_ALL, *map(str, folders.values())]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        inflows = json.loads(done.stdout.splitlines()[-1])
        yield {
            name: (folder, folder.with_name(f"{folder.name}_out") / "stochastic", inflows[str(folder)])
            for name, folder in folders.items()
        }


@pytest.mark.parametrize("name", CASES)
def test_estimated_model_matches_peer(both, name):
    folder, theirs, inflows = both[name]
    assert isinstance(inflows, list), inflows
    case = load_case(folder)
    found = describe_inflows(case)
    for hydro, stage, mean, std in rows(theirs / "inflow_seasonal_stats.parquet", "mean_m3s", "std_m3s"):
        if stage >= 0:
            assert found.statistics.mean_m3s[stage, hydro] == pytest.approx(mean, rel=1e-12)
            assert found.statistics.std_m3s[stage, hydro] == pytest.approx(std, rel=1e-12)
    expected = np.zeros((MONTHS, MONTHS, len(case.system.hydros)))
    for hydro, stage, lag, value in rows(theirs / "inflow_ar_coefficients.parquet", "lag", "coefficient"):
        if stage >= 0:
            expected[stage, int(lag) - 1, hydro] = value
    ours = np.zeros_like(expected)
    for stage, row in enumerate(found.terms.stages):
        ours[stage, : len(row.coefficients)] = row.coefficients
    assert np.abs(ours - expected).max() < 1e-11
    for hydro, stage, *expected in rows(theirs / "inflow_annual_component.parquet", *ANNUAL):
        row = found.terms.stages[stage] if stage >= 0 else found.terms.by_season[stage % MONTHS]
        assert [getattr(row, name)[hydro] for name in ANNUAL] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    check_correlation(found, theirs)
    noise = build_noise_model(case)
    check_openings(noise.openings, theirs)
    ours = simulated_inflows(noise, scenarios=3)
    for scenario, stage, hydro, value in inflows:
        assert ours[scenario, stage, hydro] == pytest.approx(value, rel=1e-9, abs=1e-9)


def rows(path: Path, *names: str) -> list[tuple]:
    table = pq.read_table(path).to_pydict()
    return list(zip(table["hydro_id"], table["stage_id"], *(table[name] for name in names), strict=True))


def check_correlation(found, theirs: Path) -> None:
    document = json.loads((theirs / "correlation.json").read_text())
    profiles = {row["stage_id"]: row["profile_name"] for row in document.get("schedule") or []}
    for stage, own in (found.correlation.schedule if found.correlation else {}).items():
        [group] = document["profiles"][profiles.get(stage, "default")]["correlation_groups"]
        matrix = found.correlation.profiles[own][0].matrix
        assert np.abs(matrix - np.array(group["matrix"])).max() < 1e-12


def check_openings(openings, theirs: Path) -> None:
    table = pq.read_table(theirs / "noise_openings.parquet")
    columns = [table[name].to_numpy() for name in ("stage_id", "opening_index", "entity_index", "value")]
    for stage, opening, entity, value in zip(*columns, strict=True):
        assert openings[stage][opening, entity] == pytest.approx(value, abs=1e-11)


def simulated_inflows(noise, scenarios: int) -> np.ndarray:
    """Return inflows by scenario, stage and hydro."""
    lags = np.repeat(noise.initial_lags[None], scenarios, axis=0)
    found = []
    for stage in range(noise.num_stages):
        drawn = noise.simulation_sampler.sample(0, range(scenarios), stage)
        inflow = noise.realise(stage, drawn).inflow_m3s + noise.lag_inflow(stage, lags)
        found.append(inflow)
        lags = np.concatenate([inflow[:, None], lags[:, :-1]], axis=1)
    return np.stack(found, axis=1)
