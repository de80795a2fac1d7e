"""Tests of stopping rules on given bounds and costs."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cobre.core.bounds import BoundMethod, BoundPlan, UpperBound
from cobre.core.stopping import (
    BoundStalling,
    Gap,
    IterationLimit,
    SimulationBased,
    StopKind,
    TimeLimit,
    UpperBoundGap,
    rules_in_force,
)
from cobre.sddp.iteration_records import IterationRecord, PhaseTimes
from cobre.sddp.training.loop import Interruption

EXAMPLE = Path(__file__).parents[3] / "examples" / "two_reservoirs"
NO_TIME = PhaseTimes(0.0, 0.0, 0.0, 0.0, 0.0)


def history(*bounds):
    return [IterationRecord(n, bound, 0.0, 0.0, 1, 1, 1, 1, 0.0, NO_TIME) for n, bound in enumerate(bounds, start=1)]


def rules(*configs, mode="any"):
    return rules_in_force(configs, mode)


def test_simulation_is_asked_for_every_period_only():
    (rule,) = rules(SimulationBased(50, 3))
    assert [rule.needs_simulation(history(*[0.0] * n)) for n in range(1, 7)] == [0, 0, 50, 0, 0, 50]
    assert rule.reason_to_stop(history(100.0), np.full(50, 100.0)) is None


@pytest.mark.parametrize(
    ("bound", "tolerance", "words"),
    [
        (98.0, 0.0, "is inside"),
        (102.0, 0.0, "is inside"),
        (90.0, 0.0, None),
        (90.0, 0.1, "is within 10 % of it"),
        (80.0, 0.1, None),
    ],
)
def test_stops_when_the_interval_reaches_the_bound(bound, tolerance, words):
    """Ten costs around 100 with a half width of 3.77."""
    costs = np.array([95.0, 105.0] * 5)
    (rule,) = rules(SimulationBased(10, 1, 0.95, tolerance))
    reason = rule.reason_to_stop(history(bound), costs)
    assert (reason is None) if words is None else (words in reason)


@pytest.mark.parametrize(
    ("iterations", "tolerance", "bounds", "stops"),
    [
        (3, 0.1, (100.0, 105.0), False),
        (3, 0.1, (100.0, 105.0, 110.0), True),  # 10 / 110: the third bound from the end, itself included
        (3, 0.1, (90.0, 105.0, 110.0), False),
        (2, 0.0, (100.0, 100.0), False),  # less than the tolerance, not equal to it
        (1, 0.1, (100.0,), False),  # a bound is not compared with itself
        (1, 0.1, (100.0, 101.0), True),
        (2, 0.1, (-110.0, -100.0), False),
    ],
)
def test_stalled_bound_stops(iterations, tolerance, bounds, stops):
    (rule,) = rules(BoundStalling(iterations, tolerance))
    assert (rule.reason_to_stop(history(*bounds)) is not None) is stops


def test_reason_states_confidence_and_numbers():
    (rule,) = rules(SimulationBased(10, 1, 0.9))
    reason = rule.reason_to_stop(history(98.0), np.array([95.0, 105.0] * 5))
    assert reason == (
        "a simulation of 10 paths costs 100.00 ± 3.06 $ at 90 % confidence: the lower bound, 98.00 $, is inside; "
        "the policy costs at most 5.16 % more than the bound"
    )


def test_rule_uses_its_number_of_paths():
    """Simulated costs that another rule requested do not change this rule's answer."""
    few, _ = rules(SimulationBased(4, 1), SimulationBased(40, 1))
    costs = np.concatenate([[99.0, 101.0, 99.0, 101.0], np.full(36, 500.0)])
    assert few.reason_to_stop(history(100.0), costs) == few.reason_to_stop(history(100.0), costs[:4]) is not None


def test_mode_all_waits_for_every_rule_at_once():
    cap, both = rules(IterationLimit(9), BoundStalling(1, 0.01), SimulationBased(4, 2), mode="all")
    near = np.array([99.0, 101.0, 99.0, 101.0])
    assert both.needs_simulation(history(100.0, 100.0)) == 4
    assert both.reason_to_stop(history(50.0, 100.0), near) is None
    assert both.reason_to_stop(history(100.0, 100.0), None) is None
    assert "; a simulation of 4 paths" in both.reason_to_stop(history(100.0, 100.0), near)
    assert cap.needs_simulation(history(100.0, 100.0)) == 0


def test_every_rule_has_a_stop_kind():
    by_rule = rules(IterationLimit(1), TimeLimit(1.0), BoundStalling(1, 0.1), SimulationBased(4, 1))
    assert [rule.kind for rule in by_rule] == ["iteration_limit", "time_limit", "bound_stalling", "simulation"]
    cap, patient = rules(IterationLimit(9), TimeLimit(1.0), BoundStalling(1, 0.1), mode="all")
    assert (cap.kind, patient.kind) == (StopKind.ITERATION_LIMIT, StopKind.BOUND_STALLING)


def test_kinds_that_mean_convergence_or_interruption():
    assert {kind for kind in StopKind if kind.has_converged} == {
        "bound_stalling",
        "simulation",
        "gap",
        "upper_bound",
        "other_rule",
    }
    stops = {kind: kind.stop for kind in Interruption}
    assert stops.pop(Interruption.NONE) is None
    outside = {kind for kind, stop in stops.items() if stop.kind.is_interruption}
    assert outside == set(Interruption) - {Interruption.NONE, Interruption.REQUESTED}


def upper_bound(value, method=BoundMethod.INNER, half_width=0.0):
    return UpperBound(method, value, 100.0, half_width, None, 10)


def test_close_upper_bound_stops():
    (rule,) = rules(UpperBoundGap(1.0, period=2))
    assert rule.needs_bound(history(100.0)) is None
    assert rule.needs_bound(history(100.0, 100.0)) == BoundPlan(paths=200)
    assert rule.reason_to_stop(history(100.0, 100.0), None, upper_bound(101.5)) is None
    assert "0.5 % above the lower bound" in rule.reason_to_stop(history(100.0, 100.0), None, upper_bound(100.5))


def test_reason_states_that_cost_is_below_lower_bound():
    (rule,) = rules(UpperBoundGap(1.0, period=1))
    assert "is 0.5 % below the lower bound" in rule.reason_to_stop(history(100.0), None, upper_bound(99.5))
    exact = [replace(history(100.0)[0], upper_bound=99.0, is_exact=True)]
    reason = Gap(None, 1.0).reason_to_stop(exact)
    assert reason == "the exact upper bound is 1 % below the lower bound, at most 1 % above it"
    assert "1.00 $ below" in Gap(2.0).reason_to_stop(exact)


def test_upper_end_of_estimate_is_compared():
    (rule,) = rules(UpperBoundGap(1.0, period=1))
    assert rule.reason_to_stop(history(100.0), None, upper_bound(100.5, BoundMethod.SAMPLED, 0.6)) is None
    assert rule.reason_to_stop(history(100.0), None, upper_bound(100.5, BoundMethod.SAMPLED, 0.4)) is not None


def test_infinite_bound_does_not_stop():
    (rule,) = rules(UpperBoundGap(1.0, period=1))
    assert rule.reason_to_stop(history(100.0), None, upper_bound(float("inf"))) is None


def test_one_class_adds_a_rule(tmp_path):
    """Decoding, saving, schema, name completion and training support the new rule without further changes."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.run([sys.executable, program, EXAMPLE], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert report["reason"] == "lower bound of 1 $ reached"
    assert report["kind"] == "other_rule"
    assert report["saved"] == [{"limit": 9, "type": "iteration_limit"}, {"value": 1.0, "type": "bound_reached"}]
    assert "LowerBoundReached" in report["schema"]
    assert "value: is -1" in report["refused"]
    assert "bound_reached" in report["unknown"]


PROGRAM = '''
import json
import sys
from typing import Literal

import cobre
from cobre.core.setting_types import NonNegative
from cobre.core.stopping import StoppingRule, stopping_rule
from cobre.io.case_folder.case_schemas import schema_of
from cobre.io.saving.documents import config_document
from cobre.records import dataclass


@stopping_rule
@dataclass(frozen=True, slots=True)
class LowerBoundReached(StoppingRule):
    """Stop when the lower bound reaches a value.

    value: in $.
    """

    value: NonNegative
    type: Literal["bound_reached"] = "bound_reached"

    def reason_to_stop(self, history, simulated=None, bound=None):
        return f"lower bound of {self.value:g} $ reached" if history[-1].lower_bound >= self.value else None


def refusal(rule):
    try:
        cobre.load_case(sys.argv[1], {"training.stopping_rules": [{"type": "iteration_limit", "limit": 9}, rule]})
    except cobre.InvalidCaseError as error:
        return str(error)


rules = [{"type": "iteration_limit", "limit": 9}, {"type": "bound_reached", "value": 1.0}]
case = cobre.load_case(sys.argv[1], {"training.stopping_rules": rules})
result = cobre.train(case)
told = {
    "reason": result.stop_reason,
    "kind": result.stop_kind,
    "saved": config_document(case.config)["training"]["stopping_rules"],
    "schema": list(schema_of("config")["$defs"]),
    "refused": refusal({"type": "bound_reached", "value": -1.0}),
    "unknown": refusal({"type": "x"}),
}
print(json.dumps(told))
'''
