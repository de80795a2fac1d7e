"""Deciding stages of deliveries, by leads in stages and in hours; expected values are worked out by hand."""

from datetime import date

import pytest

from cobre.core.delays import (
    BEFORE_STUDY,
    Anticipation,
    Deliveries,
    PastCommitment,
    PostStudy,
    PostStudyStage,
    anticipations,
)
from cobre.core.entities import AnticipatedConfig, GenerationLimits, Thermal
from cobre.core.temporal import Block, Horizon, PolicyGraph, Stage

# Three stages of the study, 10 days (240 h) each, then one of 5 days (120 h): they end at 240, 480, 720 and 840 h.
DAYS = (date(2024, 1, 1), date(2024, 1, 11), date(2024, 1, 21), date(2024, 1, 31), date(2024, 2, 5))
DELIVERIES = Deliveries(3, DAYS[:-1], DAYS[1:], (240.0, 240.0, 240.0, 120.0))


def plant(id_, config=None):
    return Thermal(id_, f"T{id_}", DAYS[0], 0, 10.0, GenerationLimits(0.0, 100.0), anticipated_config=config)


def test_deliveries_include_stages_after_the_study():
    stages = tuple(Stage(at, DAYS[at], DAYS[at + 1], (Block(0, "all", 240.0),)) for at in range(3))
    horizon = Horizon(PolicyGraph("finite_horizon", 0.0), stages)
    assert Deliveries.of(horizon, PostStudy((PostStudyStage(DAYS[3], 120.0),))) == DELIVERIES


@pytest.mark.parametrize(
    ("config", "deciders"),
    [
        (AnticipatedConfig(lead_stages=1), (BEFORE_STUDY, 0, 1, 2)),
        (AnticipatedConfig(lead_stages=2), (BEFORE_STUDY, BEFORE_STUDY, 0, 1)),
        # 240 h before the ends: 0, 240, 480 and 600 h. 0 h is before the study; 240 h and 480 h end stages 0 and 1.
        (AnticipatedConfig(lead_time_hours=240.0), (BEFORE_STUDY, 0, 1, 2)),
        # 100 h before the ends: 140, 380 and 620 h lie in the stage of the delivery itself, as does 740 h in the last.
        (AnticipatedConfig(lead_time_hours=100.0), (0, 1, 2, 3)),
        # 300 h before the ends: -60, 180, 420 and 540 h.
        (AnticipatedConfig(lead_time_hours=300.0), (BEFORE_STUDY, 0, 1, 2)),
    ],
)
def test_deciding_stage_of_each_delivery(config, deciders):
    assert DELIVERIES.deciders(config) == deciders


def test_overlap_of_delivery_and_window_in_days():
    # Delivery 1 is 11 to 20 January: 15 January to 2 February has its last six days.
    assert DELIVERIES.overlap_days(1, date(2024, 1, 15), date(2024, 2, 2)) == 6
    assert DELIVERIES.overlap_days(0, date(2024, 1, 15), date(2024, 2, 2)) == 0


def test_committed_power_is_the_mean_over_the_days_of_a_delivery():
    first = PastCommitment(7, date(2024, 1, 1), date(2024, 1, 5), 100.0)  # four of ten days
    second = PastCommitment(7, date(2024, 1, 5), date(2024, 1, 15), 50.0)  # the other six, and four of the next ten
    assert DELIVERIES.committed_mw(0, [first, second]) == (4 * 100.0 + 6 * 50.0) / 10
    assert DELIVERIES.committed_mw(2, [first, second]) == 0.0


def test_commitment_applies_to_all_days_of_its_deliveries():
    window = PastCommitment(7, date(2024, 1, 5), date(2024, 1, 15), 50.0)
    assert DELIVERIES.committed_mw(1, [window]) == 50.0


def test_decided_and_given_deliveries_by_stage():
    [anticipation] = anticipations([plant(1), plant(2, AnticipatedConfig(lead_stages=2))], DELIVERIES)
    assert anticipation == Anticipation(
        plant(2, AnticipatedConfig(lead_stages=2)), (BEFORE_STUDY, BEFORE_STUDY, 0, 1), 3
    )
    # Delivery 1 was decided before the study (-1), two stages ahead; deliveries 2 and 3 by stages 0 and 1.
    assert (anticipation.distances, anticipation.decided_distances) == (2, (2,))
    assert anticipation.decided == (2, 3)
    every = [(stage, at) for stage in range(3) for at in range(4)]
    assert [pair for pair in every if anticipation.decides(*pair)] == [(0, 2), (1, 3)]
    assert anticipation.is_known_after(BEFORE_STUDY, 1)
    assert not anticipation.is_known_after(BEFORE_STUDY, 2)
    assert anticipation.is_known_after(0, 2)
    assert not anticipation.is_known_after(2, 2), "it is delivered by then"


def test_plant_with_zero_lead_decides_nothing_ahead():
    anticipation = Anticipation(plant(1), (0, 1, 2, 3), 3)
    assert (anticipation.distances, anticipation.decided_distances, anticipation.decided) == (0, (), ())
    assert not anticipation.decides(1, 1)
