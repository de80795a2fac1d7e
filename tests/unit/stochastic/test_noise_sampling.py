"""The noise of forward passes and simulations."""

from dataclasses import replace

import numpy as np
import pytest
from noise_cases import (
    coefficients,
    inflow_stats,
    load_stats,
    make_case,
    monthly_history,
    observed,
    stages,
    table,
)

from cobre.core.config import ScenarioSource
from cobre.stochastic import NoiseModelError
from cobre.stochastic.model import build_noise_model

# What the Rust program's simulations met with seed 7: two inflows, a load and an availability, scenarios 0 to 2.
FRESH = [
    [-0.010531701175122562, -1.0069232943023487, -0.31273453509209875, 0.61733763441005],
    [0.4070240245275546, -1.104829778852379, -0.30812823039563003, 0.008031102821643444],
    [-0.23866194320343867, 2.0647008186513194, -0.23223241189272667, 0.5728768848858008],
]
STRATIFIED = [[-0.3701239885854998, 1.0546397114488446], [0.30488027555732367, -1.1426347942976534]]
SOBOL = [[-2.2813043813941123, -0.46725119906885265], [0.028241474324890062, 0.9159753321694112]]
EVERYTHING_FRESH = ScenarioSource.of("out_of_sample", "out_of_sample", "out_of_sample", seed=7)


def noisy_case(source=None, count=2, **others):
    return make_case(
        hydros=2,
        sources=1,
        source=source,
        num_scenarios=others.pop("num_scenarios", 6),
        inflow_seasonal_stats=inflow_stats([(h, t, 40.0, 10.0) for h in range(2) for t in range(count)]),
        load_seasonal_stats=load_stats([(0, t, 75.0, 5.0) for t in range(count)]),
        non_controllable_stats=table("ncs_id stage_id mean std", [(0, t, 0.5, 0.01) for t in range(count)]),
        **others,
    )


def test_in_sample_noise_is_the_noise_of_the_chosen_opening():
    model = build_noise_model(noisy_case())
    for sampler in (model.training_sampler, model.simulation_sampler):
        chosen = sampler.opening_indices(3, range(20), 1)
        assert sampler.is_in_sample
        assert set(chosen.tolist()) == {0, 1, 2, 3}
        assert np.array_equal(sampler.sample(3, range(20), 1), model.openings[1][chosen])


def test_published_choices_of_openings():
    """Compare iterations 1 and 2, scenario 0 of a study with 10 openings."""
    model = build_noise_model(make_case(horizon_stages=stages(4, openings=10)))
    sampler = model.training_sampler
    assert [int(sampler.opening_indices(1, [0], t)[0]) for t in range(4)] == [3, 9, 9, 2]
    assert [int(sampler.opening_indices(2, [0], t)[0]) for t in range(4)] == [8, 7, 9, 3]


@pytest.mark.parametrize("source", [None, EVERYTHING_FRESH])
@pytest.mark.parametrize("method", ["saa", "lhs", "qmc_sobol", "qmc_halton"])
def test_any_split_of_the_scenarios_gives_the_same_noise(source, method):
    model = build_noise_model(
        noisy_case(source, horizon_stages=stages(2, method=method), forward_passes=12, num_scenarios=12)
    )
    whole = model.training_sampler.sample(5, range(12), 1)
    parts = [model.training_sampler.sample(5, part, 1) for part in ([0, 1, 2], [3], range(4, 12))]
    assert np.array_equal(np.concatenate(parts), whole)
    again = build_noise_model(
        noisy_case(source, horizon_stages=stages(2, method=method), forward_passes=12, num_scenarios=12)
    )
    assert np.array_equal(again.training_sampler.sample(5, range(12), 1), whole)


def test_golden_out_of_sample_noise():
    sampler = build_noise_model(noisy_case(EVERYTHING_FRESH)).simulation_sampler
    assert sampler.sample(0, range(3), 0).tolist() == FRESH
    assert not sampler.is_in_sample
    with pytest.raises(ValueError, match="not sampled from the openings"):
        sampler.opening_indices(0, [0], 0)


@pytest.mark.parametrize(("method", "expected"), [("lhs", STRATIFIED), ("qmc_sobol", SOBOL)])
def test_golden_designs_of_scenarios(method, expected):
    case = noisy_case(ScenarioSource.of("out_of_sample", seed=7), horizon_stages=stages(2, method=method))
    drawn = build_noise_model(case).simulation_sampler.sample(0, range(2), 0)
    assert drawn[:, :2].tolist() == expected


def test_class_may_be_out_of_sample_while_others_are_in_sample():
    model = build_noise_model(noisy_case(ScenarioSource.of(load="out_of_sample", seed=7)))
    drawn = model.simulation_sampler.sample(0, range(3), 0)
    assert drawn[:, 2].tolist() == [row[2] for row in FRESH]
    in_sample = build_noise_model(noisy_case()).simulation_sampler.sample(0, range(3), 0)
    assert np.array_equal(drawn[:, [0, 1, 3]], in_sample[:, [0, 1, 3]])


def test_scenarios_of_an_iteration_form_a_latin_hypercube():
    source = ScenarioSource.of("out_of_sample", seed=7)
    model = build_noise_model(noisy_case(source, horizon_stages=stages(2, method="lhs"), forward_passes=50))
    drawn = model.training_sampler.sample(2, range(50), 0)[:, 0]
    edges = np.sort(drawn)
    assert np.abs(edges + edges[::-1]).max() < 1.0
    assert abs(drawn.mean()) < 0.05


def test_stages_of_noise_group_share_out_of_sample_noise():
    study_stages = stages(3, with_seasons=True)
    weeks = tuple(replace(stage, season_id=season) for stage, season in zip(study_stages, (0, 0, 1), strict=True))
    model = build_noise_model(noisy_case(EVERYTHING_FRESH, 3, horizon_stages=weeks, with_seasons=True))
    sampler = model.simulation_sampler
    assert np.array_equal(sampler.sample(0, range(4), 0), sampler.sample(0, range(4), 1))
    assert not np.array_equal(sampler.sample(0, range(4), 0), sampler.sample(0, range(4), 2))


def test_simulation_has_separate_source():
    model = build_noise_model(noisy_case(simulation_source=EVERYTHING_FRESH))
    assert model.training_sampler.is_in_sample
    assert model.simulation_sampler.sample(0, range(3), 0).tolist() == FRESH


def test_out_of_sample_noise_needs_seed():
    with pytest.raises(NoiseModelError, match=r"config\.json: scenario_source, seed: missing"):
        build_noise_model(noisy_case(ScenarioSource.of("out_of_sample")))


def test_out_of_sample_noise_cannot_be_residuals_of_history():
    values = np.random.default_rng(0).uniform(30, 60, size=(5, 12, 2))
    case = noisy_case(
        EVERYTHING_FRESH,
        horizon_stages=stages(2, with_seasons=True, method="historical_residuals"),
        with_seasons=True,
        inflow_history=monthly_history(values, 2000),
        inflow_ar_coefficients=coefficients([]),
    )
    with pytest.raises(NoiseModelError, match="cannot draw noise outside the openings"):
        build_noise_model(case)


# External libraries


def external(seed=3, count=5, stages_=3):
    rng = np.random.default_rng(seed)
    inflows, loads = rng.uniform(20, 80, (stages_, count, 2)), rng.uniform(60, 90, (stages_, count, 1))
    factors = rng.uniform(0.2, 0.8, (stages_, count, 1))
    libraries = {
        "external_inflow_scenarios": _library("hydro_id value_m3s", inflows),
        "external_load_scenarios": _library("bus_id value_mw", loads),
        "external_ncs_scenarios": _library("ncs_id availability_factor", factors),
    }
    return libraries, inflows, loads, factors


def _library(columns, values):
    rows = [(t, s, e, values[t, s, e]) for t, s, e in np.ndindex(*values.shape)]
    return table(f"stage_id scenario_id {columns}", rows)


# The columns that the Rust program's simulation replays for scenarios 0 to 7, of 5.
REPLAYED = [0, 3, 4, 0, 3, 1, 4, 1]
ALL_EXTERNAL = ScenarioSource.of("external", "external", "external", seed=7)


def external_case(libraries, source=ALL_EXTERNAL, **others):
    return noisy_case(source, 3, horizon_stages=stages(3, openings=10), num_scenarios=8, **libraries, **others)


@pytest.mark.parametrize("as_simulation", [False, True])
def test_external_scenarios_are_replayed(as_simulation):
    libraries, inflows, loads, factors = external()
    sources = {"source": ScenarioSource(), "simulation_source": ALL_EXTERNAL} if as_simulation else {}
    model = build_noise_model(external_case(libraries, **sources))
    for stage in range(3):
        outcome = model.realise(stage, model.simulation_sampler.sample(0, range(8), stage))
        assert outcome.inflow_m3s == pytest.approx(inflows[stage, REPLAYED])
        assert outcome.load_mw == pytest.approx(loads[stage, REPLAYED])
        assert outcome.availability == pytest.approx(factors[stage, REPLAYED])


def test_openings_are_scaled_by_the_library():
    libraries, inflows, loads, factors = external()
    model = build_noise_model(external_case(libraries))
    assert model.inflow_base == pytest.approx(inflows.mean(axis=1))
    assert model.inflow_sigma == pytest.approx(inflows.std(axis=1))
    assert model.load_mean == pytest.approx(loads.mean(axis=1))
    assert model.load_std == pytest.approx(loads.std(axis=1))
    assert model.availability_std == pytest.approx(factors.std(axis=1))
    assert [len(opening) for opening in model.openings] == [5, 5, 5]  # never more than the library has


def test_library_adds_noise_to_a_load_without_noise():
    libraries, _, loads, _ = external()
    case = external_case(libraries)
    flat = load_stats([(0, t, 75.0, 0.0) for t in range(3)])
    model = build_noise_model(replace(case, scenarios=replace(case.scenarios, load_seasonal_stats=flat)))
    assert model.layout.bus_ids == (0,)
    outcome = model.realise(0, model.simulation_sampler.sample(0, range(8), 0))
    assert outcome.load_mw == pytest.approx(loads[0, REPLAYED])


def memory_case(libraries, source):
    return make_case(
        hydros=2,
        horizon_stages=stages(3, with_seasons=True),
        with_seasons=True,
        recent=observed((57.0,), hydros=2),
        source=source,
        inflow_seasonal_stats=inflow_stats([(h, t, 40.0 + h, 10.0) for h in range(2) for t in range(-1, 3)]),
        inflow_ar_coefficients=coefficients([(0, t, 1, 0.5) for t in range(3)]),
        **libraries,
    )


def replayed(model):
    lags, results = np.repeat(model.initial_lags[None], 8, axis=0), []
    for stage in range(model.num_stages):
        noise = model.simulation_sampler.sample(0, range(8), stage)
        inflow = model.realise(stage, noise).inflow_m3s + model.lag_inflow(stage, lags)
        lags = np.concatenate([inflow[:, None], lags[:, :-1]], axis=1)
        results.append(inflow)
    return np.array(results)


def test_replayed_inflows_with_memory_keep_their_model():
    libraries, inflows, _, _ = external()
    only_inflow = {"external_inflow_scenarios": libraries["external_inflow_scenarios"]}
    model = build_noise_model(memory_case(only_inflow, ScenarioSource.of("external", seed=7)))
    assert model.inflow_sigma[:, 0] == pytest.approx(np.full(3, 10.0 * np.sqrt(0.75)))
    assert model.inflow_sigma[:, 1] == pytest.approx(inflows.std(axis=1)[:, 1])
    assert replayed(model) == pytest.approx(inflows[:, REPLAYED])


def test_external_scenarios_for_model_without_deviation_raise():
    libraries, _, _, _ = external(stages_=2)
    case = make_case(
        hydros=2,
        inflow_seasonal_stats=inflow_stats([(h, t, 40.0, 0.0) for h in range(2) for t in range(2)]),
        simulation_source=ScenarioSource.of("external", seed=7),
        external_inflow_scenarios=libraries["external_inflow_scenarios"],
    )
    with pytest.raises(NoiseModelError, match=r"id 0, stage number 0: the model has no noise"):
        build_noise_model(case)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "missing or empty"),
        ([(0, 0, 0, 1.0)], "stage_id 0, scenario_id 0, hydro_id 1|stage_id 1"),
        ([(t, 0, h, 1.0) for t in range(2) for h in range(3)], "hydro_id 2: there is no such id"),
        ([(t, 0, h, 1.0) for t in range(3) for h in range(2)], "stage_id 2: there is no such id"),
        ([(t, 0, h, 1.0) for t in (0, 0, 1) for h in range(2)], "two rows"),
        ([(t, 0, 0, 1.0) for t in range(2)], "hydro_id 1: no external scenarios"),
        ([(t, 0, h, float("nan")) for t in range(2) for h in range(2)], "no finite value"),
    ],
)
def test_broken_libraries(rows, message):
    library = table("stage_id scenario_id hydro_id value_m3s", rows)
    case = make_case(hydros=2, source=ScenarioSource.of("external", seed=7), external_inflow_scenarios=library)
    with pytest.raises(NoiseModelError, match=message):
        build_noise_model(case)


# Historical years


def historical_case(values, first_year, source, start=(2024, 11), **others):
    return make_case(
        hydros=2,
        horizon_stages=stages(4, start, with_seasons=True, **others),
        with_seasons=True,
        recent=observed((44.0,), start, hydros=2),
        source=source,
        inflow_seasonal_stats=inflow_stats([(h, t, 40.0 + h, 10.0) for h in range(2) for t in range(4)]),
        inflow_ar_coefficients=coefficients([(h, t, 1, 0.3) for h in range(2) for t in range(4)]),
        inflow_history=monthly_history(values, first_year),
    )


def past(years=11):
    return np.random.default_rng(7).uniform(30, 60, size=(years, 12, 2))


def expected_windows(values, first_year, years):
    """Return November and December of the year, then January and February of the next."""
    at = [year - first_year for year in years]
    return np.stack([values[at, 10], values[at, 11], [values[i + 1, 0] for i in at], [values[i + 1, 1] for i in at]])


# The years that the Rust program replays for scenarios 0 to 7, by the years it may choose from.
@pytest.mark.parametrize(
    ("wanted", "years"),
    [
        (None, [2007, 2001, 2003, 2002, 2001, 2007, 2004, 2009]),
        ((2003, 2005, 2008), [2003, 2008, 2003, 2005, 2003, 2008, 2003, 2008]),
        ((2006, 2005, 2004, 2003), [2006, 2004, 2004, 2003, 2004, 2006, 2005, 2004]),
    ],
)
def test_historical_years_are_replayed(wanted, years):
    values = past()
    source = ScenarioSource.of("historical", seed=7, historical_years=wanted)
    model = build_noise_model(historical_case(values, 2000, source))
    assert replayed(model) == pytest.approx(expected_windows(values, 2000, years))


def test_years_with_gaps_are_left_out():
    values = past()
    values[5, 11, 1] = np.nan
    case = historical_case(values, 2000, ScenarioSource.of("historical", seed=7))
    keep = ~np.isnan(case.scenarios.inflow_history["value_m3s"])
    kept = {name: column[keep] for name, column in case.scenarios.inflow_history.items()}
    model = build_noise_model(replace(case, scenarios=replace(case.scenarios, inflow_history=kept)))
    years = [2003, 2002, 2003, 2004, 2007, 2009, 2007, 2006]
    assert replayed(model) == pytest.approx(expected_windows(values, 2000, years))


def test_years_outside_history_raise():
    source = ScenarioSource.of("historical", seed=7, historical_years=(2003, 2010))
    with pytest.raises(NoiseModelError, match="historical_years: 2010: history does not cover"):
        build_noise_model(historical_case(past(), 2000, source))


def test_history_without_complete_window_raises():
    with pytest.raises(NoiseModelError, match="no year of history covers all hydros"):
        build_noise_model(historical_case(past(1), 2000, ScenarioSource.of("historical", seed=7)))


def test_only_inflows_have_history():
    with pytest.raises(NoiseModelError, match=r"load, scheme: 'historical' is not possible"):
        build_noise_model(noisy_case(ScenarioSource.of(load="historical", seed=7)))


def test_openings_from_residuals_of_history():
    """Check that each opening has the inflow noise of one year, and that there are no more openings than years."""
    values = past()
    start = (2024, 2)
    case = historical_case(values, 2000, None, start, method="historical_residuals", openings=20)
    model = build_noise_model(case)
    assert [len(opening) for opening in model.openings] == [11] * 4
    years = [1, 1, 5, 0, 10, 8, 7, 10, 2, 8, 9]
    inflow = model.realise(0, model.openings[0]).inflow_m3s + model.lag_inflow(0, model.initial_lags[None])
    assert inflow == pytest.approx(values[years, 1])


def test_many_scenarios_are_drawn_at_once():
    model = build_noise_model(noisy_case(EVERYTHING_FRESH, num_scenarios=20_000))
    drawn = model.simulation_sampler.sample(0, np.arange(20_000), 0)
    assert np.abs(drawn.mean(axis=0)).max() < 0.04
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.04
