"""Autoregressive inflows truncated at zero: how good the lower bound is, and the warnings about it."""

import json

import pytest
from dry_cases import write_dry_case
from studies import must_run

import cobre
from cobre.core.verdict import VerdictKind
from cobre.report import write_report

TRUNCATED = ("truncation", "truncation_with_penalty")


def trained(folder, method, **others):
    case = write_dry_case(folder / method, method, **others)
    result = cobre.train(case, threads=1)
    return case, result, cobre.bound(case, result.policy, method="enumeration", threads=1)


@pytest.mark.parametrize("method", TRUNCATED)
def test_cuts_above_the_cost_to_go_are_measured_and_said(tmp_path, method):
    """Check that every interface reports a lower bound above the policy's cost, with the excess at trial points."""
    case, result, exact = trained(tmp_path, method)
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


def test_the_bound_is_one_for_inflows_that_are_not_truncated(tmp_path):
    """With the slack of `penalty` in both LPs: truncated training never claims more than raw inflows cost."""
    for seed in range(4):
        folder = tmp_path / str(seed)
        _, truncated, _ = trained(folder, "truncation_with_penalty", seed=seed)
        _, _, exact = trained(folder, "penalty", seed=seed)
        assert truncated.lower_bound <= exact.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("method", "others"),
    [("penalty", {}), ("truncation", {"memory": 0.0}), ("truncation", {"std": 1.0})],
    ids=["not truncated", "no memory", "never negative"],
)
def test_a_convex_study_has_a_bound(tmp_path, method, others):
    case, result, exact = trained(tmp_path, method, **others)
    assert exact.lower_bound <= exact.upper_bound * (1 + 1e-9)
    assert exact.lower_bound_is_valid
    assert result.history[-1].trial_points.overstated is None
    assert not [found for found in cobre.validate(case).warnings if "not convex" in found.message]


def test_a_run_reports_it_with_any_number_of_ranks_and_after_a_resume(tmp_path):
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
