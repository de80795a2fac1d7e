"""The examples in the docstrings of the interfaces are executed."""

import doctest

import numpy as np

from cobre.sddp.plugins import interfaces
from cobre.sddp.plugins.interfaces import CutSelection, RiskMeasure, Sampler, StoppingRule


def test_examples_run():
    results = doctest.testmod(interfaces)
    assert results.attempted >= 5
    assert results.failed == 0


def test_docstring_examples_are_valid_plugins():
    names = {}
    for interface in (RiskMeasure, Sampler, StoppingRule, CutSelection):
        for example in doctest.DocTestParser().get_examples(interface.__doc__):
            if example.source.startswith(("class", "import")):
                exec(example.source, vars(interfaces) | names, names)
    assert np.array_equal(names["WorstCase"]().weights(np.array([[2.0, 1.0]])), [[1.0, 0.0]])
    assert names["EvenAndOdd"]().for_scenarios(9).opening_indices(1, [7, 8], 0).tolist() == [1, 0]
    kept = names["LastFifty"]().choose(None, None, np.array([1, 60]), 60, np.ones(2, np.uint8))
    assert kept.tolist() == [0, 1]
    assert names["StopAtBound"](5.0).kind is StoppingRule.kind.fget(None)
