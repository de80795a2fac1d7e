"""Risk measures: weights of outcomes that are not equally likely, and what identifies a measure in a digest."""

from dataclasses import replace

import numpy as np
import pytest
from contexts import context_of
from small_cases import SmallCase, hydro, thermal

from cobre.errors import CobreError, ValidationError
from cobre.sddp.plugins.interfaces import RiskMeasure
from cobre.sddp.plugins.risk import CvarMix, Expectation
from cobre.sddp.problem.problem import problem_digest

COSTS = np.array([5.0, 9.0, 1.0, 7.0])
UNEQUAL = np.array([0.4, 0.1, 0.3, 0.2])


class WorstCase(RiskMeasure):
    """A measure that counts only the most expensive outcome."""

    def weights(self, costs):
        return (np.arange(costs.shape[1]) == costs.argmax(axis=1)[:, None]).astype(float)


class WorstOfAll(WorstCase):
    """The same for outcomes with probabilities above 0."""

    def weights_for(self, costs, probabilities):
        return self.weights(costs[None])[0]


class Scaled(WorstCase):
    """A measure with a parameter that is not a dataclass."""

    def __init__(self, level):
        self.level = level


class Slotted(WorstCase):
    """The same with a slot."""

    __slots__ = ("level",)

    def __init__(self, level):
        self.level = level


def test_expectation_weighs_by_probability():
    assert Expectation().weights_for(COSTS, UNEQUAL) is UNEQUAL


def test_cvar_takes_the_tail_by_probability():
    # the worst 0.25: 9 with 0.1, then 0.15 of the 0.2 of 7
    expected = 0.5 * UNEQUAL + 0.5 * np.array([0.0, 0.1, 0.0, 0.15]) / 0.25
    assert np.allclose(CvarMix(0.25, 0.5).weights_for(COSTS, UNEQUAL), expected, atol=1e-15)


@pytest.mark.parametrize("measure", [Expectation(), CvarMix(0.3, 0.6), WorstCase()])
def test_equal_probabilities_give_weights_of_openings(measure):
    weights = measure.weights_for(COSTS, np.full(4, 0.25))
    assert np.allclose(weights, measure.weights(COSTS[None])[0], atol=1e-15)


def test_error_for_measure_without_probabilities_names_missing_method():
    with pytest.raises(ValidationError, match=r"WorstCase has no weights for unequal .*define weights_for") as raised:
        WorstCase().weights_for(COSTS, UNEQUAL)
    assert isinstance(raised.value, CobreError)
    assert "0.4, 0.1, 0.3, 0.2" in str(raised.value)


def test_own_weights_for_are_used():
    assert WorstOfAll().weights_for(COSTS, UNEQUAL).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    case = SmallCase(
        hydros=[hydro(0)], thermals=[thermal(0, 10.0, 90.0)], stages=2, load={0: 60.0}, inflow={0: (10.0, 1.0)}
    )
    return context_of(case.write(tmp_path_factory.mktemp("case"))).problem


@pytest.mark.parametrize("kind", [Scaled, Slotted])
def test_parameters_of_any_measure_are_in_the_digest(problem, kind):
    def digest(level):
        return problem_digest(replace(problem, risk=(kind(level),) * problem.num_stages), [0, 1], None)

    assert digest(0.1) == digest(0.1)
    assert digest(0.1) != digest(0.2)
