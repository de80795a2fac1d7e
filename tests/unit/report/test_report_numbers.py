"""Numbers of the report equal those of the Parquet files."""

import json
from collections import defaultdict

import numpy as np
import pytest
from pyarrow import parquet
from report_page import data_of, explorer_values, series

from cobre.runs.labels import NEGLIGIBLE

FOUR_DIGITS = 7e-5


@pytest.fixture(scope="module")
def data(finished_page):
    return data_of(finished_page)


@pytest.fixture(scope="module")
def rows(finished_run):
    return lambda name: parquet.read_table(finished_run / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def study(finished_run):
    return json.loads((finished_run / "study.json").read_text())


def by_stage(rows, key, value):
    """Sum the scenarios by stage with plain dictionaries, independent of the report's arrays."""
    sums = defaultdict(lambda: defaultdict(float))
    for row in rows:
        if key(row):
            sums[row["stage_id"]][row["scenario_id"]] += value(row)
    return [list(sums[stage].values()) for stage in sorted(sums)]


def test_bounds_equal_convergence_table(data, rows):
    table = rows("training/convergence")
    assert len(table) == 12
    assert series(data, "bounds", "lower bound") == [row["lower_bound"] for row in table]
    assert series(data, "bounds", "mean of sampled paths") == [row["upper_bound"] for row in table]
    assert series(data, "bounds", "± 95 %") == [row["upper_bound_half_width"] for row in table]
    assert series(data, "bounds", "cost of the policy") == [row["policy_cost"] for row in table]
    assert series(data, "bounds", "its ± 95 %") == [row["policy_cost_half_width"] for row in table]
    assert series(data, "bounds-later", "cost of the policy") == [row["policy_cost"] for row in table[6:]]
    assert series(data, "bounds-later", "lower bound") == [row["lower_bound"] for row in table[6:]]


def test_histogram_and_tiles_equal_scenario_costs(data, rows, finished_run):
    costs = defaultdict(float)
    for row in rows("simulation/costs"):
        costs[row["scenario_id"]] += row["immediate_cost"] * row["discount_factor"]
    costs = np.array(list(costs.values()))
    spread = dict(zip(data["tables"]["cost-spread"]["columns"], data["tables"]["cost-spread"]["rows"][0], strict=True))
    assert spread["mean"] == pytest.approx(costs.mean(), rel=1e-12)
    assert spread["mean"] == pytest.approx(
        json.loads((finished_run / "summary.json").read_text())["simulated_mean_cost"]
    )
    assert spread["95 %"] == pytest.approx(np.percentile(costs, 95), rel=1e-12)
    assert sum(series(data, "cost-histogram", "scenarios")) == len(costs) == 200
    assert series(data, "cost-histogram", "share that costs no more")[-1] == 1.0
    components = sum(row[1] for row in data["tables"]["cost-components"]["rows"])
    assert components == pytest.approx(costs.mean(), rel=1e-9)


def test_storage_fan_equals_percentiles_of_table(data, rows):
    last = [row for row in rows("simulation/hydros") if row["block_id"] == 2]
    stages = by_stage(last, lambda row: True, lambda row: row["storage_final_hm3"])
    for name, share in (("5 %", 5), ("25 %", 25), ("median", 50), ("75 %", 75), ("95 %", 95)):
        assert series(data, "storage", name) == pytest.approx([np.percentile(values, share) for values in stages])
    assert series(data, "storage", "mean") == pytest.approx([np.mean(values) for values in stages])


def test_fans_of_plants_equal_percentiles_of_tables(data, rows, study):
    names = {entity["id"]: entity["name"] for entity in study["entities"]["hydros"]}
    last = [row for row in rows("simulation/hydros") if row["block_id"] == 2]
    for id_, name in names.items():
        stages = by_stage(last, lambda row, id_=id_: row["hydro_id"] == id_, lambda row: row["water_value_per_hm3"])
        found = explorer_values(data, "hydros", name, "water_value")
        for statistic, share in (("5 %", 5), ("median", 50), ("95 %", 95)):
            assert found[statistic] == pytest.approx(
                [np.percentile(values, share) for values in stages], rel=FOUR_DIGITS
            )
        assert found["mean"] == pytest.approx([np.mean(values) for values in stages], rel=FOUR_DIGITS)


def test_single_scenarios_equal_tables(data, rows, study):
    costs = defaultdict(float)
    for row in rows("simulation/costs"):
        costs[row["scenario_id"]] += row["immediate_cost"] * row["discount_factor"]
    cheapest = min(costs, key=costs.get)
    assert f"cheapest (scenario {cheapest})" in data["explorer"]["scenarios"]
    name = study["entities"]["hydros"][1]["name"]
    expected = [
        row["storage_final_hm3"]
        for row in rows("simulation/hydros")
        if (row["hydro_id"], row["block_id"], row["scenario_id"]) == (1, 2, cheapest)
    ]
    found = explorer_values(data, "hydros", name, "storage")[f"cheapest (scenario {cheapest})"]
    assert found == pytest.approx(expected, rel=FOUR_DIGITS)


def test_flows_are_averages_over_hours(data, rows, study):
    hours = {stage["id"]: stage["block_hours"] for stage in study["stages"]}
    stages = by_stage(
        rows("simulation/hydros"),
        lambda row: row["hydro_id"] == 0,
        lambda row: row["turbined_m3s"] * hours[row["stage_id"]][row["block_id"]] / sum(hours[row["stage_id"]]),
    )
    found = explorer_values(data, "hydros", study["entities"]["hydros"][0]["name"], "turbined")["median"]
    assert found == pytest.approx([np.percentile(values, 50) for values in stages], rel=FOUR_DIGITS)


def test_every_entity_can_be_found(data, study):
    kinds = {kind["key"]: kind["names"] for kind in data["explorer"]["kinds"]}
    known = {kind: [entity["name"] for entity in found] for kind, found in study["entities"].items() if found}
    assert kinds == known


def test_hydro_table_equals_means_of_tables(data, rows, study):
    table = data["tables"]["hydros"]
    found = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    spilling, stored = defaultdict(set), defaultdict(list)
    for row in rows("simulation/hydros"):
        if row["spillage_m3s"] > NEGLIGIBLE:
            spilling[row["hydro_id"]].add(row["scenario_id"])
        if row["block_id"] == 2:
            stored[row["hydro_id"]].append(row["storage_final_hm3"])
    for hydro in study["entities"]["hydros"]:
        row = found[hydro["name"]]
        assert row["mean hm³"] == pytest.approx(np.mean(stored[hydro["id"]]))
        assert row["scenarios that spill"] == pytest.approx(len(spilling[hydro["id"]]) / 200, abs=0.005)
        low, high = hydro["min_storage_hm3"], hydro["max_storage_hm3"]
        assert row["full"] == pytest.approx((np.mean(stored[hydro["id"]]) - low) / (high - low))


def test_generation_is_the_average_power_of_a_stage(data, rows, study):
    hours = [stage["hours"] for stage in study["stages"]]
    stages = by_stage(rows("simulation/thermals"), lambda row: True, lambda row: row["generation_mwh"])
    expected = [np.percentile(np.array(values) / h, 75) for values, h in zip(stages, hours, strict=True)]
    assert series(data, "thermal-generation", "75 %") == pytest.approx(expected)
    served = sum(np.array(series(data, "mix", name)) for name in ("hydro", "thermal", "not served"))
    assert served == pytest.approx(series(data, "mix", "load"), rel=1e-6)


def test_spot_price_is_the_average_over_hours(data, rows):
    hours = defaultdict(float)
    for row in rows("simulation/buses"):
        hours[row["stage_id"], row["block_id"]] = row["load_mwh"] / row["load_mw"]
    whole = {stage: sum(h for (s, _), h in hours.items() if s == stage) for stage, _ in hours}
    stages = by_stage(
        rows("simulation/buses"),
        lambda row: row["bus_id"] == 0,
        lambda row: row["spot_price"] * hours[row["stage_id"], row["block_id"]] / whole[row["stage_id"]],
    )
    expected = [np.percentile(values, 50) for values in stages]
    assert series(data, "spot-price-0", "median") == pytest.approx(expected)


def test_thermal_table_equals_sums_of_tables(data, rows):
    energy, cost = defaultdict(float), defaultdict(float)
    for row in rows("simulation/thermals"):
        energy[row["thermal_id"]] += row["generation_mwh"] / 1000 / 200
        cost[row["thermal_id"]] += row["generation_cost"] / 200
    found = data["tables"]["thermals"]["rows"]
    assert [row[2] for row in found] == pytest.approx(sorted(energy.values(), reverse=True))
    assert sorted(row[5] for row in found) == pytest.approx(sorted(cost.values()))


def test_deficit_table_equals_sums_of_tables(data, rows):
    missing = defaultdict(float)
    for row in rows("simulation/buses"):
        missing[row["scenario_id"]] += row["deficit_mwh"]
    ((_, share, mean, of_load, most, worst),) = data["tables"]["deficits"]["rows"]
    load = sum(row["load_mwh"] for row in rows("simulation/buses")) / 200
    assert share == sum(value > NEGLIGIBLE for value in missing.values()) / 200 == 0.005  # 3 have more than 0
    assert mean == pytest.approx(sum(missing.values()) / 200)
    assert most == pytest.approx(max(missing.values()))
    assert of_load == pytest.approx(mean / load)
    assert (worst is None) == (most == 0)


def test_rank_times_equal_events(data, finished_run):
    events = [json.loads(line) for line in (finished_run / "events.jsonl").read_text().splitlines()]
    loads = np.array([event["load"] for event in events if event["event"] == "iteration"])
    assert loads.shape == (12, 2, 2)
    assert series(data, "ranks", "busy") == pytest.approx(loads[:, :, 0].sum(axis=0))
    assert [row[3] for row in data["tables"]["rank-times"]["rows"]] == pytest.approx(loads[:, :, 1].sum(axis=0))
    assert sum(row[5] for row in data["tables"]["rank-times"]["rows"]) == 12


def test_solver_work_equals_tables_and_summary(data, finished_run, rows):
    """By phase: forward, backward, lower bound; then the simulation, whose two ranks both look for their starts."""
    found = {row[0]: row[1:] for row in data["tables"]["solver-work"]["rows"]}
    assert list(found) == ["forward passes", "backward passes", "lower bound", "simulation"]
    table = rows("training/convergence")
    for title, phase in zip(found, ("forward", "backward", "lower_bound"), strict=False):
        solves, pivots, a_solve, us_per_pivot, *_, retries, library_solves = found[title]
        assert (solves, pivots) == tuple(sum(row[f"{phase}_{name}"] for row in table) for name in ("solves", "pivots"))
        assert a_solve == pivots / solves
        seconds = sum(row[f"{phase}_us_per_pivot"] * row[f"{phase}_pivots"] for row in table if row[f"{phase}_pivots"])
        assert us_per_pivot == pytest.approx(seconds / pivots)
        assert (retries, library_solves) == (0, 0)
    assert sum(row["lp_solves"] for row in table) == sum(found[title][0] for title in list(found)[:3])
    assert found["simulation"][0] == 200 * 12 + 2 * 12
    summary = json.loads((finished_run / "summary.json").read_text())["solver"]
    assert [work["solves"] for work in summary.values()] == [row[0] for row in found.values()]
    assert [work["pivots"] for work in summary.values()] == [row[1] for row in found.values()]
