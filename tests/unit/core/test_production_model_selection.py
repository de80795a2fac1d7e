"""Tests of the production model of a plant by stage."""

from datetime import date
from types import SimpleNamespace

import pytest

from cobre.core.hydro import HydroProduction, ProductionChoice, ProductionModels, StageRange
from cobre.core.temporal import Stage

STAGES = tuple(
    Stage(number, date(2030, 1 + number, 1), date(2030, 2 + number, 1), (), season_id=number % 3) for number in range(8)
)
PLANT = SimpleNamespace(id=4, generation=SimpleNamespace(model="linearized_head"))
DECLARED = ProductionChoice("linearized_head")
A, B, C = (ProductionChoice("constant_productivity", value) for value in (1.0, 2.0, 3.0))


def by_id(production, stages=STAGES):
    models = ProductionModels({} if production is None else {PLANT.id: production})
    return [(choice, [stage.id for stage in held]) for choice, held in models.stages_by_choice(PLANT, stages)]


@pytest.mark.parametrize(
    ("production", "expected"),
    [
        (None, [(DECLARED, [*range(8)])]),
        (HydroProduction(4, default=A), [(A, [*range(8)])]),
        (HydroProduction(4, (StageRange(0, None, A),)), [(A, [*range(8)])]),
        (HydroProduction(4, (StageRange(2, 4, A),)), [(A, [2, 3, 4]), (DECLARED, [0, 1, 5, 6, 7])]),
        (HydroProduction(4, (StageRange(2, 4, A), StageRange(3, None, B)), default=C), None),
        (HydroProduction(4, (), {0: A, 2: B}), [(A, [0, 3, 6]), (DECLARED, [1, 4, 7]), (B, [2, 5])]),
        (HydroProduction(4, (StageRange(5, 5, C),), {0: A}, B), [(C, [5]), (A, [0, 3, 6]), (B, [1, 2, 4, 7])]),
    ],
)
def test_first_range_precedes_season_and_default(production, expected):
    overlapping = [(A, [2, 3, 4]), (B, [5, 6, 7]), (C, [0, 1])]
    assert by_id(production) == (overlapping if expected is None else expected)


def test_choice_of_one_stage_equals_choice_for_all_stages():
    production = HydroProduction(4, (StageRange(1, 2, A),), {0: B, 1: C})
    models = ProductionModels({4: production})
    together = {stage_id: choice for choice, ids in by_id(production) for stage_id in ids}
    assert {stage.id: models.choice_for(PLANT, stage) for stage in STAGES} == together
    assert by_id(production, ()) == []
