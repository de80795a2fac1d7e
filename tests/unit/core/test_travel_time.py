"""Arrival of releases downstream; expected values are worked out by hand."""

from datetime import date

import numpy as np
import pytest

from cobre.core.delays import PastRelease, Spans, TravelArc, TravelAxis, travel_arcs
from cobre.core.hydro import Hydro, HydroGeneration, Outflow, Reservoir
from cobre.core.temporal import Block, Horizon, PolicyGraph, Stage

DAYS = (date(2024, 1, 1), date(2024, 1, 5), date(2024, 1, 9))


def axis(block_mode="parallel"):
    """Return two stages of 96 h, each with blocks of 24 h and 72 h."""
    blocks = (Block(0, "a", 24.0), Block(1, "b", 72.0))
    stages = tuple(Stage(at, DAYS[at], DAYS[at + 1], blocks, block_mode=block_mode) for at in range(2))
    return TravelAxis.of(Horizon(PolicyGraph("finite_horizon", 0.0), stages))


def hydro(id_, downstream_id, hours):
    generation = HydroGeneration("constant_productivity", 0.0, 10.0, 0.0, 10.0)
    return Hydro(id_, "", DAYS[0], Reservoir(0, 1), Outflow(0), generation, (), downstream_id, hours)


def test_arcs_need_a_travel_time_and_a_plant_downstream():
    plants = [hydro(1, 2, 24.0), hydro(2, 3, 0.0), hydro(3, 4, None), hydro(4, None, 24.0)]
    assert travel_arcs(plants) == (TravelArc(1, 2, 24.0),)


def test_overlap_of_periods_in_hours():
    spans = Spans(np.array([0.0, 10.0, 30.0]))
    assert spans.lengths.tolist() == [10.0, 20.0]
    # 5 to 15 h has five hours in each period; 40 to 50 h has none.
    assert spans.overlap_hours(np.array([5.0, 40.0]), np.array([15.0, 50.0])).tolist() == [[5.0, 5.0], [0.0, 0.0]]


def test_only_chronological_blocks_are_separate_periods():
    assert [spans.edges.tolist() for spans in axis().blocks] == [[0.0, 96.0], [96.0, 192.0]]
    assert [spans.edges.tolist() for spans in axis("chronological").blocks] == [[0.0, 24.0, 96.0], [96.0, 120.0, 192.0]]


def test_shares_of_release_by_stage_of_arrival():
    # Released from 0 to 96 h, it arrives from 24 to 120 h: 72 of 96 h in stage 0, 24 of 96 h in stage 1.
    assert axis().shares(0, 24.0).tolist() == [[0.75, 0.25]]
    # Released from 96 to 192 h, it arrives from 120 to 216 h: a quarter after the study.
    assert axis().shares(1, 24.0).tolist() == [[0.0, 0.75]]
    # Blocks of 0 to 24 h and 24 to 96 h arrive from 36 to 60 h and from 60 to 132 h: half of the latter in stage 1.
    assert axis("chronological").shares(0, 36.0).tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_shares_of_a_release_by_the_block_of_the_same_stage():
    # 0 to 24 h arrives from 24 to 48 h, in the second block; 24 to 96 h from 48 to 120 h: 48 of 72 h in that block.
    expected = [[0.0, 1.0], [0.0, pytest.approx(2 / 3)]]
    assert axis("chronological").arrival_shares_within(0, 24.0).tolist() == expected


def test_water_in_transit_arrives_by_time_of_release():
    # The release of stage 0 (0 to 96 h) arrives from 36 to 132 h: in stage 1 from 96 to 120 h and from 120 to 132 h.
    assert axis("chronological").arrival_shares(1, 36.0).tolist() == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    # Before the study: evenly over 24 and 72 h.
    assert axis("chronological").arrival_shares(0, 36.0).tolist() == [0.25, 0.75]


def test_releases_may_arrive_after_the_study():
    # The release of stage 0 ends at 96 h: it has arrived by 192 h unless it takes more than 96 h.
    assert [axis().arrives_after_study(0, hours) for hours in (95.0, 96.0, 97.0)] == [False, False, True]
    assert axis().arrives_after_study(1, 1.0)


def test_hours_of_a_release_before_the_study_by_stage():
    # 30 December to 2 January is cut at the start of the study: -48 to 0 h, which arrives from 72 to 120 h.
    release = PastRelease(1, date(2023, 12, 30), date(2024, 1, 2), 100.0)
    assert axis().past_hours(release, 120.0).tolist() == [24.0, 24.0]
