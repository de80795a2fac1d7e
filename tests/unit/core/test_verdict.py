"""The verdict on bounds: what it says, and that it never says more than the figures do."""

import pytest

from cobre.core.verdict import BoundHistory, VerdictKind, verdict

FLAT = [50.0, 90.0, *[100.0] * 11]
RISING = [50.0 + 2.0 * step for step in range(26)]


def judged(lower, upper, half_width, **facts):
    return verdict(BoundHistory(lower, [upper] * len(lower), [half_width] * len(lower), **facts))


@pytest.mark.parametrize(
    ("lower", "upper", "half_width", "kind", "words"),
    [
        (FLAT, 96.5, 13.0, VerdictKind.CONVERGED, "inside the 95 % band"),
        (FLAT, 80.0, 5.0, VerdictKind.CONVERGED, "above the 95 % band"),
        (FLAT, 120.0, 5.0, VerdictKind.LEVELLED_OFF, "at least 15.00 % above it"),
        (RISING, 101.0, 13.0, VerdictKind.RISING, "rises by 2.00 % per iteration over the last 10;"),
        (RISING, 150.0, 13.0, VerdictKind.RISING, "at least 37.00 % above it"),
        (FLAT, 96.5, 0.0, VerdictKind.LEVELLED_OFF, "a single sampled path"),
        ([100.0], 100.0, 1.0, VerdictKind.UNDECIDED, "one iteration"),
    ],
)
def test_sampled_bounds(lower, upper, half_width, kind, words):
    found = judged(lower, upper, half_width)
    assert found.kind is kind
    assert words in found.words


def test_exact_bounds_converge_by_their_gap_alone():
    assert judged(FLAT, 100.005, 0.0, is_exact=True).kind is VerdictKind.CONVERGED
    assert judged(FLAT, 100.02, 0.0, is_exact=True).kind is VerdictKind.LEVELLED_OFF
    assert judged(FLAT, 100.005, 0.0, is_exact=True, is_risk_averse=True).kind is VerdictKind.CONVERGED


def test_under_a_risk_measure_the_sampled_mean_proves_nothing():
    found = judged(FLAT, 100.0, 13.0, is_risk_averse=True)
    assert found.kind is VerdictKind.LEVELLED_OFF
    assert "no upper bound of what is minimised" in found.words


def test_an_interrupted_run_was_stopped_early_whatever_the_bounds_say():
    found = verdict(BoundHistory(FLAT, [96.5] * 13, [13.0] * 13), is_interrupted=True)
    assert found.kind is VerdictKind.STOPPED_EARLY
    assert found.words.startswith("stopped early; at that point: converged")


def test_there_is_no_verdict_before_the_first_iteration():
    assert verdict(BoundHistory([], [], [])) is None
