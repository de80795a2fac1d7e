"""A short study with the policy of a long one as boundary."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from contexts import context_of, iterated
from small_cases import SmallCase, hydro, thermal
from solving import limits_of

import cobre
from cobre._native import CUTS_PER_BLOCK
from cobre.comm.backends.local import LocalCommunicator
from cobre.core.config import BoundaryPolicy
from cobre.io.case import load_case
from cobre.io.findings import InvalidCaseError
from cobre.io.policies.policy_file import PolicyData, PolicyMetadata, StageCuts, write_policy
from cobre.policy.boundary import apply_boundary_policy, load_boundary_policy, with_lags_of_boundary
from cobre.sddp.cut_pool import MAX_CHUNK_CUTS, CutSet
from cobre.sddp.problem.boundary import (
    BoundaryCutPool,
    BoundaryMismatchError,
    ExternalCuts,
    fit_boundary,
    lags_read,
    with_boundary,
)
from cobre.sddp.problem.problem import build_problem
from cobre.sddp.resolved.resolve import resolve
from cobre.solver.batches import no_bases
from cobre.study.preparation.prepare import prepare

SEASONS = {
    "cycle_type": "monthly",
    "seasons": [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)],
}
LONG, SHORT = 5, 2
INFLOW = [(18.0, 6.0), (12.0, 4.0), (8.0, 3.0), (6.0, 2.0), (10.0, 3.0)]
BEFORE = ("2023-10-01", "2023-11-01", "2023-12-01", "2024-01-01")


def system(stages, lags=0, **others):
    """Return two reservoirs in a row for which saving water pays."""
    case = SmallCase(
        hydros=[hydro(0, downstream=1), hydro(1)],
        thermals=[thermal(0, 10.0, 20.0), thermal(1, 90.0, 60.0)],
        stages=stages,
        openings=3,
        load={0: 60.0},
        inflow=dict.fromkeys((0, 1), INFLOW[:stages]),
        storage={0: 40.0, 1: 25.0},
        rate=0.1,
        forward_passes=3,
        stage_fields={
            number: {"season_id": number, "state_variables": {"storage": True, "inflow_lags": bool(lags)}}
            for number in range(stages)
        },
        **others,
    )
    if lags:
        # Months before the study have statistics too: only then do inflows remember them.
        months = [(number - 3, 15.0, 5.0) for number in range(3)] + [(n, *INFLOW[n]) for n in range(stages)]
        case.tables["scenarios/inflow_seasonal_stats"] = [
            {"hydro_id": number, "stage_id": stage, "mean_m3s": mean, "std_m3s": std}
            for number in (0, 1)
            for stage, mean, std in months
        ]
        case.tables["scenarios/inflow_ar_coefficients"] = [
            {"hydro_id": number, "stage_id": stage, "lag": lag, "coefficient": 0.4 / lag}
            for number in (0, 1)
            for stage in range(stages)
            for lag in range(1, 1 + lags)
        ]
    return case


def write_case(case, folder, lags=0):
    """Write the case with seasons, and with the inflows of `lags` months before it."""
    case.write(folder)
    months = list(pairwise(BEFORE))
    before = [
        {"id": number - 3, "start_date": start, "end_date": end, "season_id": 9 + number}
        for number, (start, end) in enumerate(months)
    ]
    add_to(folder / "stages.json", {"season_definitions": SEASONS, "pre_study_stages": before})
    observed = [
        {"hydro_id": number, "start_date": start, "end_date": end, "value_m3s": 20.0 + 3 * number + place}
        for number in (0, 1)
        for place, (start, end) in enumerate(months[len(months) - lags :])
    ]
    add_to(folder / "initial_conditions.json", {"recent_observations": observed})
    return folder


def add_to(path, content):
    path.write_text(json.dumps(json.loads(path.read_text()) | content))


def trained_policy(folder, target, iterations=40):
    """Train the long study and write its policy to a file; return its bound."""
    context = context_of(folder)
    bounds = iterated(context, iterations)
    write_policy(target, as_data(context, load_case(folder)))
    return bounds[-1]


def as_data(context, case):
    pool, stages = context.pool, case.horizon.stages
    ids = [plant.id for plant in case.system.hydros]
    lags = context.problem.noise.max_order
    names = [f"storage:{n}" for n in ids] + [f"inflow_lag{lag}:{n}" for lag in range(1, lags + 1) for n in ids]
    metadata = PolicyMetadata(
        state_names=tuple(names),
        stage_ids=tuple(stage.id for stage in stages),
        stage_start_dates=tuple(stage.start_date.isoformat() for stage in stages),
        stage_end_dates=tuple(stage.end_date.isoformat() for stage in stages),
        entity_ids={"hydros": tuple(ids)},
        iterations=1,
        seeds={},
        cost_scale=context.problem.cost_scale,
    )
    cuts = []
    for stage in range(pool.num_stages):
        kept = pool.written[stage] != 0
        stored = pool.cuts(stage)
        count = int(kept.sum())
        numbers = np.zeros(count, np.int32)
        flags = np.ones(count, np.uint8)
        cuts.append(StageCuts(stored.intercepts[kept], stored.coefficients[kept], numbers, numbers, flags))
    return PolicyData(metadata, tuple(cuts))


def priced_context(folder, overrides):
    """Return the training context of a study with a boundary policy, prepared step by step."""
    case = load_case(folder, overrides)
    plain = context_of(folder)
    study = prepare(replace(case, config=replace(case.config, policy=replace(case.config.policy, boundary=None))))
    priced = load_boundary_policy(case)
    noise = with_lags_of_boundary(case, study.noise, priced)
    resolved = resolve(case)
    options, consumption = study.problem.stages[0].plan.options, np.zeros(0)
    problem = build_problem(resolved, noise, options, consumption, study.problem.names)
    problem, rows, notes = apply_boundary_policy(case, resolved, problem, priced)
    comm = LocalCommunicator()
    context = replace(
        plain,
        comm=comm,
        problem=problem,
        sampler=noise.training_sampler,
        state=replace(plain.state, pool=BoundaryCutPool(comm, problem, rows)),
    )
    for number, stage in enumerate(problem.stages):
        context.solver.load(number, stage.program)
    context.state.bases = [no_bases(stage.program) for stage in problem.stages]
    return context, notes


@pytest.mark.parametrize("lags", [0, 1, 3])
def test_bound_of_short_study_with_boundary_equals_bound_of_long_study(tmp_path, lags):
    """With three lags and two stages, cuts at the end read inflows of months before the short study."""
    folder = write_case(system(LONG, lags), tmp_path / "long", lags)
    bound = trained_policy(folder, tmp_path / "policy.bin")
    short = write_case(system(SHORT, lags), tmp_path / "short", lags)
    context, notes = priced_context(short, {"policy.boundary": {"path": "../policy.bin"}})
    alone = iterated(context_of(short), 10)[-1]
    assert iterated(context, 20)[-1] == pytest.approx(bound, rel=1e-9)
    assert alone < 0.7 * bound
    assert notes == ()


def test_study_without_memory_keeps_lags_read_by_boundary_cuts(tmp_path):
    """The same inflows with no noise and no memory in the short study: its state still ends with the last inflow."""
    folder = write_case(system(LONG, 1), tmp_path / "long", 1)
    trained_policy(folder, tmp_path / "policy.bin", 10)
    short = write_case(system(SHORT), tmp_path / "short")
    context, _ = priced_context(short, {"policy.boundary": {"path": "../policy.bin"}})
    assert context.problem.dimension == 4
    assert context.problem.noise.ar_coefficients.shape == (SHORT, 1, 2)
    assert not context.problem.noise.ar_coefficients.any()
    bounds = iterated(context, 3)
    assert bounds == sorted(bounds)


def test_lags_before_the_study_that_boundary_cuts_read_are_required(tmp_path):
    folder = write_case(system(LONG, 3), tmp_path / "long", 3)
    trained_policy(folder, tmp_path / "policy.bin", 3)
    short = write_case(system(SHORT), tmp_path / "short")
    with pytest.raises(ValueError, match="lag 1 is needed but not every day"):
        priced_context(short, {"policy.boundary": {"path": "../policy.bin"}})


def test_last_stage_has_the_cost_to_go_of_the_boundary(tmp_path):
    folder = write_case(system(LONG), tmp_path / "long")
    trained_policy(folder, tmp_path / "policy.bin", 3)
    short = write_case(system(SHORT), tmp_path / "short")
    context, _ = priced_context(short, {"policy.boundary": {"path": "../policy.bin"}})
    assert limits_of(context.problem.stages[-1])["future_cost"][1] == np.inf
    assert limits_of(context_of(short).problem.stages[-1])["future_cost"] == (0.0, 0.0)


def test_negative_boundary_costs_lower_the_floors_of_all_stages(tmp_path):
    """Final storage is worth more than any cost, so the lower bound of the cost-to-go must be negative."""
    folder = write_case(system(SHORT), tmp_path / "short")
    names = ("storage:0", "storage:1")
    cuts = CutSet(np.array([0.0]), np.array([[-2.0, -3.0]]))
    context = context_of(folder)
    boundary = fit_boundary(ExternalCuts(names, cuts, 1e6), names, 1e6, is_strict=True)
    problem = with_boundary(context.problem, resolve(load_case(folder)), boundary)
    floors = [limits_of(stage)["future_cost"][0] for stage in problem.stages]
    assert floors[1] == pytest.approx(-2.0 * 100.0 - 3.0 * 100.0)
    assert floors[0] == pytest.approx(floors[1] * problem.stages[1].plan.data.discount)


def test_whole_runs_with_a_boundary(tmp_path):
    """Trained and simulated as a user would: the costs of paths hold what is left at the end, as the bound does."""
    long = write_case(system(LONG, 1), tmp_path / "long", 1)
    bound = trained_policy(long, tmp_path / "policy.bin")
    short = write_case(system(SHORT, 1), tmp_path / "short", 1)
    overrides = {"policy.boundary": {"path": "../policy.bin", "strict": True}}
    trained = cobre.train(short, threads=1, iterations=20, config_overrides=overrides)
    assert trained.lower_bound == pytest.approx(bound, rel=1e-9)
    simulated = cobre.simulate(short, trained.policy, scenarios=200, threads=1, config_overrides=overrides)
    assert simulated.mean_cost == pytest.approx(bound, abs=1.5 * simulated.half_width)
    costs = simulated.tables["costs"].to_pylist()
    assert all(row["future_cost"] > 0.0 for row in costs if row["stage_id"] == SHORT - 1)
    last_paths = np.mean([record.upper_bound for record in trained.history[5:]])
    assert last_paths == pytest.approx(bound, rel=0.2)


PRICED = ExternalCuts(
    ("storage:0", "storage:1", "inflow_lag1:0", "inflow_lag1:1", "inflow_lag2:0", "inflow_lag2:1"),
    CutSet(np.array([5.0, 6.0]), np.array([[1.0, 2.0, 0.0, 3.0, 0.0, 0.0], [4.0, 5.0, 0.0, 0.0, 0.0, 0.0]])),
    1e6,
)


def test_states_are_matched_by_name_and_money_by_scale():
    boundary = fit_boundary(PRICED, ("storage:1", "storage:0", "inflow_lag1:1", "inflow_lag1:0"), 2e6, is_strict=True)
    assert boundary.cuts.intercepts.tolist() == [2.5, 3.0]
    assert boundary.cuts.coefficients.tolist() == [[1.0, 0.5, 1.5, 0.0], [2.5, 2.0, 0.0, 0.0]]
    assert boundary.dropped == ()


def test_missing_states_are_zero_unless_strict():
    names = ("storage:1",)
    assert fit_boundary(PRICED, names, 1e6, is_strict=False).dropped == ("storage:0", "inflow_lag1:1")
    with pytest.raises(BoundaryMismatchError, match=r"storage:0, inflow_lag1:1.*strict = false"):
        fit_boundary(PRICED, names, 1e6, is_strict=True)


def test_unpriced_plant_is_reported():
    with pytest.raises(BoundaryMismatchError, match=r"hydros 7; it covers hydros 0, 1"):
        fit_boundary(PRICED, ("storage:0", "storage:1", "storage:7"), 1e6, is_strict=False)


def test_no_cuts_are_an_error():
    empty = replace(PRICED, cuts=CutSet(np.zeros(0), np.zeros((0, 6))))
    with pytest.raises(BoundaryMismatchError, match="no cuts at the end"):
        fit_boundary(empty, ("storage:0",), 1e6, is_strict=False)


def test_only_lags_that_some_cut_depends_on_are_read():
    assert lags_read(PRICED, [0, 1]).tolist() == [[False, True]]
    assert lags_read(PRICED, [0]).shape == (0, 1)


def test_rows_hold_all_cuts_in_full_chunks():
    count = MAX_CHUNK_CUTS + 3
    cuts = CutSet(np.arange(count, dtype=float), np.arange(2.0 * count).reshape(count, 2))
    rows = fit_boundary(
        ExternalCuts(("storage:0", "storage:1"), cuts, 1.0), ("storage:0", "storage:1"), 1.0, is_strict=True
    ).rows()
    assert [chunk.shape for chunk in rows.chunks] == [(3, MAX_CHUNK_CUTS), (3, CUTS_PER_BLOCK)]
    assert rows.count == len(rows.active) == count
    whole = np.concatenate(rows.chunks, axis=1)[:, :count]
    assert np.array_equal(whole, np.vstack([cuts.intercepts, cuts.coefficients.T]))


def test_error_for_a_policy_of_other_dates_lists_its_dates(tmp_path):
    folder = write_case(system(LONG), tmp_path / "long")
    trained_policy(folder, tmp_path / "policy.bin", 1)
    late = system(SHORT)
    late.stage_fields[1] |= {"end_date": "2024-03-15"}
    short = write_case(late, tmp_path / "short")
    with pytest.raises(InvalidCaseError, match=r"2024-03-15.*its stages end on 2024-02-01, 2024-03-01"):
        load_case(short, {"policy.boundary": {"path": "../policy.bin"}})
    case = load_case(short)
    policy = replace(case.config.policy, boundary=BoundaryPolicy(str(tmp_path / "policy.bin")))
    with pytest.raises(BoundaryMismatchError, match=r"2024-03-15.*its stages end on 2024-02-01, 2024-03-01"):
        load_boundary_policy(replace(case, config=replace(case.config, policy=policy)))


def test_paths_are_relative_to_the_case(tmp_path):
    folder = write_case(system(LONG), tmp_path / "long")
    trained_policy(folder, tmp_path / "policy.bin", 1)
    (tmp_path / "out" / "policy").mkdir(parents=True)
    (tmp_path / "policy.bin").rename(tmp_path / "out" / "policy" / "policy.bin")
    short = write_case(system(SHORT), tmp_path / "short")
    for path in ("../out", "../out/policy", str(tmp_path / "out")):
        assert load_boundary_policy(load_case(short, {"policy.boundary": {"path": path}})) is not None
