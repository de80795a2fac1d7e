"""Openings, layout and realisations of a study."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from noise_cases import coefficients, inflow_stats, load_stats, make_case, observed, stages, table
from published_data import PUBLISHED_CASES, ROOT

from cobre.core.case import Correlation, CorrelationGroup
from cobre.core.config import OpeningsSource, ScenarioSource
from cobre.core.entities import canonical_order
from cobre.io.case import load_case
from cobre.stochastic import NoiseModelError
from cobre.stochastic.correlation import group_leaders, group_numbers
from cobre.stochastic.model import build_noise_model
from cobre.stochastic.opening_tree import independent_draws

FOLDERS = sorted(path.parent for place in (ROOT / "examples", PUBLISHED_CASES) for path in place.glob("*/config.json"))
TWO_STAGES = inflow_stats([(h, t, 40.0 + h, 10.0) for h in range(2) for t in range(2)])


def availability(rows):
    return table("ncs_id stage_id mean std", rows)


def mixed_case(**others):
    """Return two hydros, two buses (the second with random load), two sources (the second with statistics)."""
    return make_case(
        hydros=2,
        buses=2,
        sources=2,
        inflow_seasonal_stats=TWO_STAGES,
        load_seasonal_stats=load_stats([(0, 0, 70.0, 0.0), (1, 0, 75.0, 0.0), (1, 1, 75.0, 5.0)]),
        non_controllable_stats=availability([(1, 0, 0.5, 0.1), (1, 1, 0.9, 0.2)]),
        **others,
    )


def test_layout_is_hydros_then_random_buses_then_sources_with_statistics():
    model = build_noise_model(mixed_case())
    layout = model.layout
    assert (layout.hydro_ids, layout.bus_ids, layout.ncs_ids) == ((0, 1), (1,), (1,))
    assert [opening.shape for opening in model.openings] == [(4, 4), (4, 4)]
    assert np.array_equal(model.openings[1], independent_draws(42, 1, 4, 4))


def test_realisation():
    model = build_noise_model(mixed_case())
    outcome = model.realise(1, np.array([[1.0, -2.0, 2.0, 1.0], [0.0, 0.0, -20.0, -10.0]]))
    assert outcome.inflow_m3s.tolist() == [[50.0, 21.0], [40.0, 41.0]]
    assert outcome.load_mw.tolist() == [[0.0, 85.0], [0.0, 0.0]]
    assert outcome.availability.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert model.realise(0, np.zeros((1, 4))).load_mw.tolist() == [[70.0, 75.0]]
    assert model.realise(0, np.zeros((1, 4))).availability.tolist() == [[1.0, 0.5]]


def test_study_without_noise():
    model = build_noise_model(make_case(hydros=0))
    assert [opening.shape for opening in model.openings] == [(4, 0), (4, 0)]
    outcome = model.realise(0, model.openings[0])
    assert outcome.inflow_m3s.shape == (4, 0)
    assert outcome.load_mw.tolist() == [[0.0]] * 4
    assert model.training_sampler.sample(1, [0, 1], 0).shape == (2, 0)


def test_memory_of_inflows_is_a_sum_over_lags():
    case = make_case(
        horizon_stages=stages(3, with_seasons=True),
        with_seasons=True,
        recent=observed((100.0, 90.0)),
        inflow_seasonal_stats=inflow_stats([(0, t, 100.0, 10.0) for t in range(-2, 3)]),
        inflow_ar_coefficients=coefficients([(0, t, lag, 0.5 / lag) for t in range(3) for lag in (1, 2)]),
    )
    model = build_noise_model(case)
    assert model.lag_inflow(0, model.initial_lags[None]).tolist() == [[0.5 * 100.0 + 0.25 * 90.0]]


def test_noise_is_assigned_in_canonical_order():
    case = mixed_case()
    later = replace(case.system.hydros[0], operational_start_date=date(2025, 1, 1))
    swapped = replace(case.system, hydros=canonical_order((later, case.system.hydros[1])))
    model = build_noise_model(replace(case, system=swapped))
    assert model.layout.hydro_ids == (1, 0)
    assert model.inflow_base[0].tolist() == [41.0, 40.0]


def test_declaration_order_of_rows_does_not_matter():
    case = mixed_case()
    tables = case.scenarios
    backwards = {name: column[::-1] for name, column in tables.inflow_seasonal_stats.items()}
    other = build_noise_model(replace(case, scenarios=replace(tables, inflow_seasonal_stats=backwards)))
    assert np.array_equal(other.inflow_base, build_noise_model(case).inflow_base)


def test_stages_of_one_season_and_year_share_their_noise():
    first, second, third, fourth = stages(4, openings=5)
    shared = tuple(replace(stage, season_id=season) for stage, season in ((first, 0), (second, 0), (third, 1)))
    model = build_noise_model(
        make_case(hydros=2, horizon_stages=(*shared, fourth), inflow_seasonal_stats=TWO_STAGES, with_seasons=True)
    )
    assert np.array_equal(model.openings[0], model.openings[1])
    assert np.array_equal(model.openings[2], independent_draws(42, 2, 5, 2))
    assert np.array_equal(model.openings[3], independent_draws(42, 3, 5, 2))


def test_noise_groups():
    study_stages = stages(6, (2024, 11))
    seasons = [10, 10, 10, 10, None, None]
    grouped = [replace(stage, season_id=season) for stage, season in zip(study_stages, seasons, strict=True)]
    # November and December 2024, then January and February 2025: the same season, another year.
    assert group_leaders(grouped) == (0, 0, 2, 2, 4, 5)
    assert group_numbers(grouped) == (0, 0, 1, 1, 2, 3)
    back_again = [replace(stage, season_id=season) for stage, season in zip(study_stages[:3], (0, 1, 0), strict=True)]
    assert group_leaders(back_again) == (0, 1, 2)


def test_larger_stage_of_noise_group_extends_draws():
    first, second = stages(2, openings=3)
    pair = (replace(first, season_id=0), replace(second, season_id=0, num_openings=5))
    model = build_noise_model(make_case(horizon_stages=pair, with_seasons=True))
    assert np.array_equal(model.openings[1], independent_draws(42, 0, 5, 1))


@pytest.mark.parametrize("method", ["lhs", "qmc_sobol", "qmc_halton"])
def test_sampling_methods_are_used(method):
    model = build_noise_model(make_case(hydros=2, horizon_stages=stages(2, openings=16, method=method)))
    assert np.abs(model.openings[0].mean(axis=0)).max() < 0.25
    assert not np.array_equal(model.openings[0], independent_draws(42, 0, 16, 2))


def test_unknown_opening_methods_raise():
    with pytest.raises(NoiseModelError, match=r"stage 0, sampling_method: 'selective' cannot generate openings"):
        build_noise_model(make_case(horizon_stages=stages(2, method="selective")))


def test_stages_need_openings():
    with pytest.raises(NoiseModelError, match=r"stage 0, num_openings: .*at least 1"):
        build_noise_model(make_case(horizon_stages=stages(2, openings=0)))


def test_correlation_is_applied_to_openings():
    pair = CorrelationGroup("g", (("inflow", 0), ("inflow", 1)), np.array([[1.0, 1.0], [1.0, 1.0]]))
    model = build_noise_model(mixed_case(correlation=Correlation({"default": (pair,)}, {})))
    assert np.allclose(model.openings[0][:, 0], model.openings[0][:, 1])
    assert np.array_equal(model.openings[0][:, 2:], independent_draws(42, 0, 4, 4)[:, 2:])


FILE = ScenarioSource(openings=OpeningsSource("file"))


def opening_rows(change=lambda rows: rows):
    rows = [(t, w, e, t + w / 10 + e / 100) for t in range(2) for w in range(4) for e in range(2)]
    return table("stage_id opening_index entity_index value", change(rows))


def file_case(**others):
    return make_case(hydros=2, inflow_seasonal_stats=TWO_STAGES, **others)


def test_openings_from_a_file():
    model = build_noise_model(file_case(source=FILE, noise_openings=opening_rows(lambda rows: rows[::-1])))
    assert model.openings[1].tolist() == [[1.0, 1.01], [1.1, 1.11], [1.2, 1.21], [1.3, 1.31]]


def test_file_of_openings_acts_only_when_asked_for():
    model = build_noise_model(file_case(noise_openings=opening_rows()))
    assert np.array_equal(model.openings[0], independent_draws(42, 0, 4, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "stage_id 0: has 7 rows"),
        (lambda rows: [(9, 0, 0, 0.0), *rows], "stage_id 9: there is no such stage"),
        (lambda rows: [(0, 4, 0, 0.0), *rows[1:]], "indices must be below 4"),
        (lambda rows: [rows[1], *rows[1:]], "missing, given twice"),
        (lambda rows: [(0, 0, 0, float("nan")), *rows[1:]], "no finite value"),
    ],
)
def test_broken_files_of_openings(change, message):
    with pytest.raises(NoiseModelError, match=message):
        build_noise_model(file_case(source=FILE, noise_openings=opening_rows(change)))


def test_missing_file_of_openings():
    with pytest.raises(NoiseModelError, match=r"noise_openings\.parquet: file: missing"):
        build_noise_model(file_case(source=FILE))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_whole_cases_have_noise_models(folder):
    """Check the examples, and the published cases if they are next to the repository."""
    case = load_case(folder)
    model = build_noise_model(case)
    assert model.num_stages == len(case.horizon.stages)
    assert model.num_hydros == len(case.system.hydros)
    assert model.layout.dimension == len(case.system.hydros) + len(model.layout.bus_ids) + len(model.layout.ncs_ids)
    assert [len(openings) for openings in model.openings] == [stage.num_openings for stage in case.horizon.stages]
