"""Optimal costs of small systems, each of which isolates one feature of the LP."""

import pytest
import systems_machines
import systems_network
import systems_water
from known_systems import KNOWN
from solving import lower_bound

# Relative; cobre-python solves its scaled LPs to 1e-7.
TOLERANCE = 1e-8
SYSTEMS = (systems_water, systems_machines, systems_network)


def test_every_module_registers_systems():
    assert {build.__module__ for build, _ in KNOWN.values()} == {module.__name__ for module in SYSTEMS}


@pytest.mark.parametrize("name", KNOWN)
def test_optimum(name, tmp_path):
    build, optimum = KNOWN[name]
    assert lower_bound(build(), tmp_path) == pytest.approx(optimum, rel=TOLERANCE)


@pytest.mark.parametrize("expression", systems_network.RULES)
def test_optimum_with_a_rule(expression, tmp_path):
    case = systems_network.rule(expression, *systems_network.RULES[expression])
    assert lower_bound(case, tmp_path) == pytest.approx(systems_network.RULE_OPTIMA[expression], rel=TOLERANCE)


def test_rules_change_the_optimum():
    optima = list(systems_network.RULE_OPTIMA.values())
    assert len(set(optima)) > 0.8 * len(optima)
