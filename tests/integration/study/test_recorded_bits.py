"""`cobre verify`: the record in the package is that of this code."""

import json

import pytest
from cli_runs import cobre

from cobre.study import verification
from cobre.study.verification import Bits


@pytest.mark.parametrize("example", ["two_reservoirs", "four_regions"])
def test_examples_give_recorded_bits_with_wide_and_narrow_instructions(example):
    """Where this fails after a change that is meant to alter bits: see CONTRIBUTING, `cobre verify --record`."""
    done = cobre("verify", "--example", example, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    checks = json.loads(done.stdout)["checks"]
    assert [check["instructions"] for check in checks] == ["wide", "narrow"]
    assert len({check["training"] for check in checks}) == 1


def bits(**changes):
    given = {
        "training": "t" * 64,
        "simulation": "s" * 64,
        "lower_bounds": ("0x1p+0", "0x1p+1"),
        "upper_bounds": ("0x1p+2",),
    }
    return Bits(**(given | changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"lower_bounds": ("0x1p+0", "0x1.8p+1")}, "lower bound of iteration 2 is 3 (0x1.8p+1), recorded 2 (0x1p+1)"),
        ({"upper_bounds": ("none",)}, "upper bound of iteration 1 is none, recorded 4 (0x1p+2)"),
        ({"training": "u" * 64}, "all bounds are equal, but cuts differ"),
        ({"simulation": "u" * 64}, "the simulation differs"),
    ],
)
def test_first_differing_result_is_named(change, words):
    difference = bits(**change).difference(bits())
    assert difference.startswith(words) and bool(difference) == bool(words)


def test_versions_without_recorded_bits_are_reported(monkeypatch):
    monkeypatch.setattr(verification, "ARITHMETIC", 10**6)
    with pytest.raises(verification.NotVerifiedError, match=r"arithmetic 1000000 with highspy .*recorded: nothing"):
        verification.known_bits()


def test_missing_example_is_a_usage_error():
    done = cobre("verify", "--example", "no_such")
    assert done.returncode == 2 and "two_reservoirs" in done.stderr
