"""Truncated autoregressive inflows: measured excess of the lower bound, and warnings."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from small_cases import SmallCase, hydro, thermal
from studies import must_run

import cobre
from cobre.core.verdict import VerdictKind
from cobre.report.document import write_report

SEASONS = {
    "cycle_type": "monthly",
    "seasons": [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)],
}
BEFORE = ("2023-10-01", "2023-11-01", "2023-12-01", "2024-01-01")
MEAN_M3S, STD_M3S, OBSERVED_M3S, MEMORY = 12.0, 10.0, 8.0, 0.7


def write_dry_case(folder, method, seed=0, price=700.0, std=STD_M3S, memory=MEMORY, **others):
    """Write four stages with four openings. price: $ for one m3/s of missing inflow over an hour."""
    stages = 4
    case = SmallCase(
        **{
            "hydros": [hydro(0)],
            "thermals": [thermal(0, 10.0, 20.0), thermal(1, 90.0, 60.0)],
            "stages": stages,
            "openings": 4,
            "load": {0: 50.0},
            "inflow": {0: [(MEAN_M3S, std)] * stages},
            "storage": {0: 30.0},
            "forward_passes": 4,
            "iterations": 60,
            "stage_fields": {
                number: {"season_id": number, "state_variables": {"storage": True, "inflow_lags": True}}
                for number in range(stages)
            },
        }
        | others
    )
    months = range(-3, stages)
    case.tables["scenarios/inflow_seasonal_stats"] = [
        {"hydro_id": 0, "stage_id": stage, "mean_m3s": MEAN_M3S, "std_m3s": std} for stage in months
    ]
    if memory:
        case.tables["scenarios/inflow_ar_coefficients"] = [
            {"hydro_id": 0, "stage_id": stage, "lag": 1, "coefficient": memory} for stage in range(stages)
        ]
    case = replace(case, penalties={"inflow_nonnegativity_cost": price})
    case.write(folder)
    months = list(pairwise(BEFORE))
    before = [
        {"id": number - 3, "start_date": start, "end_date": end, "season_id": 9 + number}
        for number, (start, end) in enumerate(months)
    ]
    observed = [
        {"hydro_id": 0, "start_date": start, "end_date": end, "value_m3s": OBSERVED_M3S} for start, end in months
    ]
    _change(folder / "stages.json", {"season_definitions": SEASONS, "pre_study_stages": before})
    _change(folder / "initial_conditions.json", {"recent_observations": observed})
    config = json.loads((folder / "config.json").read_text())
    config["training"]["tree_seed"] = seed
    _change(
        folder / "config.json",
        {"training": config["training"], "modeling": {"inflow_non_negativity": {"method": method}}},
    )
    return folder


def _change(path, content):
    path.write_text(json.dumps(json.loads(path.read_text()) | content))


TRUNCATED = ("truncation", "truncation_with_penalty")


def train_policy(folder, method, **others):
    case = write_dry_case(folder / method, method, **others)
    result = cobre.train(case, threads=1)
    return case, result, cobre.bound(case, result.policy, method="enumeration", threads=1)


@pytest.mark.parametrize("method", TRUNCATED)
def test_cuts_above_the_cost_to_go_are_measured_and_reported(tmp_path, method):
    """Check that every interface reports a lower bound above the policy's cost, with the excess at trial points."""
    case, result, exact = train_policy(tmp_path, method)
    assert exact.upper_bound < 0.98 * exact.lower_bound
    last = result.history[-1].trial_points
    assert 0.0 < last.overstated < 0.1 * result.lower_bound
    assert 0.0 < last.overstated_worst < 0.2
    assert result.verdict.kind is not VerdictKind.CONVERGED
    share = 100 * last.overstated / result.lower_bound
    assert f"along the paths of the last iteration cuts were {share:.2f} % of it above" in result.verdict.sentence
    assert not exact.lower_bound_is_valid
    assert "not a bound of this cost" in str(exact)
    [warning] = [found for found in cobre.validate(case).warnings if "not convex" in found.message]
    assert (warning.file, warning.entity) == ("config.json", "modeling.inflow_non_negativity.method")


def test_bound_is_valid_for_raw_inflows(tmp_path):
    """With the slack of `penalty` in both LPs, truncated training never claims more than the cost with raw inflows."""
    for seed in range(4):
        folder = tmp_path / str(seed)
        _, truncated, _ = train_policy(folder, "truncation_with_penalty", seed=seed)
        _, _, exact = train_policy(folder, "penalty", seed=seed)
        assert truncated.lower_bound <= exact.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("method", "others"),
    [("penalty", {}), ("truncation", {"memory": 0.0}), ("truncation", {"std": 1.0})],
    ids=["not truncated", "no memory", "never negative"],
)
def test_convex_study_has_valid_bound(tmp_path, method, others):
    case, result, exact = train_policy(tmp_path, method, **others)
    assert exact.lower_bound <= exact.upper_bound * (1 + 1e-9)
    assert exact.lower_bound_is_valid
    assert result.history[-1].trial_points.overstated is None
    assert not [found for found in cobre.validate(case).warnings if "not convex" in found.message]


def test_excess_is_reported_for_any_ranks_and_after_resume(tmp_path):
    """Compare summary, events and table, whichever rank solved the trial points."""
    case = write_dry_case(tmp_path / "case", "truncation", iterations=8)
    must_run(case, tmp_path / "one", "--backend", "local", "--threads", "1")
    must_run(case, tmp_path / "two", "--backend", "shm", "--workers", "2")
    must_run(case, tmp_path / "again", "--backend", "tcp", "--workers", "2", "--iterations", "5")
    must_run(case, tmp_path / "again", "--resume", "--backend", "local", "--threads", "1", "--iterations", "8")
    found = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("one", "two", "again")]
    assert [content["lower_bound_is_valid"] for content in found] == [False] * 3
    assert found[0]["overstated"] == found[1]["overstated"] == found[2]["overstated"] > 0.0
    tables = [cobre.results.load_convergence_arrow(tmp_path / name) for name in ("one", "two", "again")]
    names = ("excess", "excess_std", "overstated", "overstated_worst")
    columns = [[table[name].to_pylist() for name in names] for table in tables]
    assert columns[0] == columns[1] == columns[2]
    assert "not a bound of the cost" in found[0]["verdict"]
    must_run(case, tmp_path / "short", "--backend", "local", "--threads", "1", "--iterations", "1")
    for name, words in (("one", "not a bound of the cost"), ("short", "estimates the cost, and may be above it")):
        page = write_report(tmp_path / name).read_text()
        assert (page.count(words), page.count("lower bound is proven")) == (1, 0)
