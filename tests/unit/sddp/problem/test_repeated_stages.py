"""LPs of years that repeat earlier ones are built once, and equal those that are built for each stage."""

from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from cobre.io.case import load_case
from cobre.sddp.lp.build import WITHOUT_EFFECT_ON_LP, build_stage_lp, has_same_lp
from cobre.sddp.problem.problem import feed
from cobre.study.preparation.prepare import prepare

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "four_regions"


@pytest.fixture(scope="module")
def stages():
    return prepare(load_case(EXAMPLE)).problem.stages


def digest_of(lp):
    digest = sha256()
    for part in (lp.program, lp.columns, lp.water, lp.power, lp.cost, lp.generic_slacks, lp.deliveries):
        feed(digest, part)
    return digest.hexdigest()


def test_stages_of_the_second_year_share_programs_and_keep_their_plans(stages):
    assert sum(later.program is earlier.program for earlier, later in zip(stages, stages[12:], strict=False)) == 11
    assert len({id(stage.plan) for stage in stages}) == len(stages)
    assert [stage.plan.data.stage.id for stage in stages] == list(range(len(stages)))


def test_shared_programs_equal_separately_built_ones(stages):
    assert [digest_of(stage) for stage in stages] == [digest_of(build_stage_lp(stage.plan)) for stage in stages]


def arrays_below(record, path=()):
    """Yield paths of arrays with elements."""
    for item in fields(record):
        value, here = getattr(record, item.name), (*path, item.name)
        if is_dataclass(value):
            yield from arrays_below(value, here)
        elif isinstance(value, np.ndarray) and value.size:
            yield here


def changed_at(record, path):
    """Return a record whose array at a path differs in its last element."""
    name, *rest = path
    value = getattr(record, name)
    if rest:
        return replace(record, **{name: changed_at(value, rest)})
    other = value.copy()
    last = other.flat[-1]
    other.flat[-1] = not last if other.dtype == bool else last + 1 if np.isfinite(last) else 7.0
    return replace(record, **{name: other})


def test_difference_in_any_number_needs_separate_lp(stages):
    plan = stages[0].plan
    paths = [path for path in arrays_below(plan.data) if not WITHOUT_EFFECT_ON_LP & set(path)]
    assert len(paths) > 40
    assert has_same_lp(replace(plan), plan)
    for path in paths:
        assert not has_same_lp(replace(plan, data=changed_at(plan.data, path)), plan), path


@pytest.mark.parametrize("name", ["autoregression", "is_out_of_reach"])
def test_so_does_a_difference_in_the_plan(stages, name):
    assert not has_same_lp(stages[0].plan, changed_at(stages[0].plan, (name,)))


def test_different_floors_or_discounts_need_separate_lp(stages):
    plan = stages[0].plan
    assert not has_same_lp(replace(plan, future_cost_floor=-1.0), plan)
    assert not has_same_lp(replace(plan, future_cost_ceiling=1.0), plan)
    assert not has_same_lp(replace(plan, data=replace(plan.data, discount=0.5)), plan)


def test_noise_and_dates_do_not_change_an_lp(stages):
    plan = stages[0].plan
    data = replace(plan.data, stage=stages[5].plan.data.stage, bus=changed_at(plan.data.bus, ("load_mean_mw",)))
    other = replace(plan, data=data)
    assert has_same_lp(plan, other)
    assert digest_of(build_stage_lp(other)) == digest_of(stages[0])
