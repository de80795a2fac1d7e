"""The numbers of a comparison, checked against whole tables in pandas."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from compared_studies import NEW_PLANT
from pyarrow import parquet

from cobre.comparison.measures import PairedMeans
from cobre.comparison.result import compare
from cobre.comparison.runs import ComparedRun, common_scenarios, match_entities, match_stages
from cobre.core.confidence import mean_with_half_width
from cobre.io.output import ResultsError
from cobre.io.output.results import RowsInMemory, describe_table
from cobre.report.stored_study import StoredStudy
from cobre.runs.labels import COST_COMPONENTS


def table(run, name):
    return parquet.read_table(run / "simulation" / f"{name}.parquet").to_pandas()


def by_scenario(run, name, column, weight=1.0):
    rows = table(run, name)
    values = rows[column] * (rows[weight] if isinstance(weight, str) else weight)
    return values.groupby(rows["scenario_id"]).sum()


def row_of(comparison, name, **wanted):
    found = [row for row in comparison.table(name).to_pylist() if all(row[key] == wanted[key] for key in wanted)]
    assert len(found) == 1, found
    return found[0]


def check_row(row, first, second):
    """Check means and the paired interval of two series by scenario."""
    mean, half_width = mean_with_half_width((second - first).tolist(), 0.95)
    assert row["a"] == pytest.approx(first.mean(), rel=1e-9)
    assert row["b"] == pytest.approx(second.mean(), rel=1e-9)
    assert row["difference"] == pytest.approx(mean, rel=1e-7, abs=1e-7)
    assert row["half_width"] == pytest.approx(half_width, rel=1e-6, abs=1e-7)


def test_cost_equals_runs_with_paired_interval(comparison, runs):
    costs = [by_scenario(run, "costs", "immediate_cost", "discount_factor") for run in runs]
    row = row_of(comparison, "summary", quantity="cost", component=None)
    check_row(row, *costs)
    assert row["difference"] < 0  # one cheap plant more
    apart = mean_with_half_width(costs[0].tolist(), 0.95)[1]
    assert row["half_width"] < apart  # paired by scenario: narrower than the interval of either mean


def test_components_add_up_to_the_cost(comparison):
    rows = [row for row in comparison.summary.to_pylist() if row["quantity"] == "cost"]
    total = row_of(comparison, "summary", quantity="cost", component=None)
    for name in ("a", "b", "difference"):
        assert sum(row[name] for row in rows if row["component"]) == pytest.approx(total[name], rel=1e-9)


def test_every_cost_column_of_a_run_is_a_component_or_a_sum_of_them(runs):
    columns = {name for name in table(runs[0], "costs").columns if name.endswith(("_cost", "_reward"))}
    sums = {"total_cost", "immediate_cost", "future_cost", "hydro_violation_cost"}
    assert columns - sums <= set(COST_COMPONENTS)


@pytest.mark.parametrize(
    ("key", "name", "column", "factor"),
    [
        ("thermal_generation", "thermals", "generation_mwh", 1e-3),
        ("hydro_generation", "hydros", "generation_mwh", 1e-3),
        ("deficit", "buses", "deficit_mwh", 1e-3),
        ("load", "buses", "load_mwh", 1e-3),
    ],
)
def test_energy_is_summed_over_entities_and_stages(comparison, runs, key, name, column, factor):
    series = [by_scenario(run, name, column, factor) for run in runs]
    if max(values.abs().max() for values in series) < 1e-6:
        pytest.skip("nothing in this study")
    check_row(row_of(comparison, "summary", quantity=key), *series)


def test_storage_and_water_values_are_from_last_block(comparison, runs):
    for key, column in (("storage", "storage_final_hm3"), ("water_value", "water_value_per_hm3")):
        series = []
        for run in runs:
            rows = table(run, "hydros")
            rows = rows[(rows["stage_id"] == 2) & (rows["hydro_id"] == 0)]
            series.append(rows[rows["block_id"] == rows["block_id"].max()].set_index("scenario_id")[column])
        check_row(row_of(comparison, "all_rows", quantity=key, entity_id=0, stage_id=2), *series)


def test_prices_are_averages_over_blocks_by_their_hours(comparison, runs):
    series = []
    for run in runs:
        rows = table(run, "buses")
        rows = rows[(rows["stage_id"] == 1) & (rows["bus_id"] == 0)]
        hours = rows["load_mwh"] / rows["load_mw"]
        weighted = (rows["spot_price"] * hours).groupby(rows["scenario_id"]).sum()
        series.append(weighted / hours.groupby(rows["scenario_id"]).sum())
    check_row(row_of(comparison, "all_rows", quantity="marginal_cost", entity_id=0, stage_id=1), *series)


def test_spillage_is_a_volume(comparison, runs):
    series = []
    for run in runs:
        rows = table(run, "hydros").merge(block_hours(run), on=["stage_id", "block_id"])
        volume = rows["spillage_m3s"] * rows["hours"] * 0.0036
        series.append(volume.groupby(rows["scenario_id"]).sum())
    found = [row for row in comparison.all_rows.to_pylist() if row["quantity"] == "spillage"]
    check_row(next(row for row in found if row["entity"] is None and row["stage"] is None), *series)


def block_hours(run):
    rows = table(run, "buses")
    rows = rows[(rows["scenario_id"] == 0) & (rows["load_mw"] > 0)]
    hours = (rows["load_mwh"] / rows["load_mw"]).rename("hours")
    return pd.concat([rows[["stage_id", "block_id"]], hours], axis=1).drop_duplicates(["stage_id", "block_id"])


def test_stages_add_up_and_have_dates(comparison):
    rows = [row for row in comparison.stages.to_pylist() if row["quantity"] == "cost"]
    total = row_of(comparison, "summary", quantity="cost", component=None)
    assert sum(row["difference"] for row in rows) == pytest.approx(total["difference"], rel=1e-9)
    assert all(len(row["stage"]) == 7 and row["stage"][4] == "-" for row in rows)  # 2030-01


def test_plant_in_one_study_is_listed_without_difference(comparison):
    assert [(kind, name) for kind, _, name in comparison.only_in("B")] == [("thermals", NEW_PLANT)]
    assert comparison.only_in("A") == []
    row = row_of(comparison, "entities", quantity="thermal_generation", entity=NEW_PLANT)
    assert (row["a"], row["difference"], row["present_in"]) == (None, None, "B")
    assert row["b"] > 0


def test_common_plants_have_the_same_inflows_in_all_scenarios(comparison):
    assert comparison.money.has_same_inflows is True
    assert comparison.money.scenarios == len(table_scenarios(comparison))


def table_scenarios(comparison):
    return set(parquet.read_table(f"{comparison.names[0]}/simulation/costs.parquet")["scenario_id"].to_pylist())


def describe_again(folder):
    """Let the manifest of a results directory describe its tables as they are now."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["tables"].values():
        entry.update(describe_table(folder / entry["file"], entry["file"]))
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_row_groups_of_any_size_give_the_same_numbers(runs, comparison, tmp_path):
    """Check scenarios that begin and end within row groups."""
    copies = [shutil.copytree(run, tmp_path / run.name) for run in runs]
    for copy in copies:
        for path in (copy / "simulation").glob("*.parquet"):
            parquet.write_table(parquet.read_table(path), path, row_group_size=37)
        describe_again(copy / "simulation")
    again = [ComparedRun.stored(copy) for copy in copies]
    from cobre.comparison.measures import compare_means
    from cobre.comparison.result import long_table

    assert long_table(compare_means(*again)).equals(comparison.all_rows)


def test_only_row_groups_of_scenario_are_read():
    read = []

    class Counted(RowsInMemory):
        def pieces(self, columns=None):
            for index, piece in enumerate(super().pieces(columns)):
                read.append(index)
                yield piece

    scenario = np.repeat(np.arange(100), 2_000).astype(np.int32)
    rows = Counted(pa.table({"scenario_id": scenario, "x": np.ones(len(scenario))}))
    run = ComparedRun("a", StoredStudy({}), {"t": rows}, None)
    scenarios = run.scenarios("t", ["x"])
    assert next(scenarios)[0] == 0
    assert read == [0]
    assert [number for number, _ in scenarios] == list(range(1, 100))


def test_rows_out_of_order_raise():
    rows = RowsInMemory(pa.table({"scenario_id": np.array([1, 0], np.int32)}))
    with pytest.raises(ResultsError, match="order of scenarios"):
        list(ComparedRun("a", StoredStudy({}), {"t": rows}, None).scenarios("t", []))


def test_only_common_scenarios_are_paired():
    a, b = ([(number, {}) for number in numbers] for numbers in ([0, 1, 3, 5], [1, 2, 3, 4]))
    assert [number for number, _, _ in common_scenarios(iter(a), iter(b))] == [1, 3]


def test_fewer_scenarios_in_one_study_are_noted(runs, tmp_path):
    copy = shutil.copytree(runs[1], tmp_path / "b")
    for path in (copy / "simulation").glob("*.parquet"):
        rows = parquet.read_table(path)
        if "scenario_id" in rows.column_names:
            parquet.write_table(rows.filter(rows["scenario_id"].to_numpy() < 5), path)
    describe_again(copy / "simulation")
    from cobre.comparison.measures import compare_means

    money = compare_means(ComparedRun.stored(runs[0]), ComparedRun.stored(copy))
    assert money.scenarios == 5
    assert any("5 common scenarios" in note for note in money.notes)


def test_simulations_in_memory_are_compared_by_ids(runs, comparison):
    results = [fake_result(run) for run in runs]
    found = compare(*results)
    assert found.bits is None
    assert found.money.scenarios == comparison.money.scenarios
    cost = row_of(found, "summary", quantity="cost", component=None)
    assert cost["difference"] == row_of(comparison, "summary", quantity="cost", component=None)["difference"]
    assert found.only_in("B")[0][0] == "thermals"
    with pytest.raises(TypeError, match="one of each"):
        compare(results[0], runs[1])


def fake_result(run):
    from cobre.study.results import SimulationResult

    tables = {path.stem: parquet.read_table(path) for path in (run / "simulation").glob("*.parquet")}
    costs = by_scenario(run, "costs", "immediate_cost", "discount_factor")
    return SimulationResult(tables, tuple(costs), float(costs.mean()), float(costs.std()), "", 0.0)


def test_means_match_numpy_and_absent_cells_are_nan():
    draws = np.random.default_rng(7).normal(1e9, 1.0, (2, 50, 3))
    draws[1, :, 2] = np.nan
    means = PairedMeans((3,))
    for a, b in zip(*draws, strict=True):
        means.add(a, b)
    difference = draws[1] - draws[0]
    assert means.a == pytest.approx(draws[0].mean(axis=0), rel=1e-14)
    for cell in (0, 1):
        mean, half_width = mean_with_half_width(difference[:, cell].tolist(), 0.95)
        assert means.difference[cell] == pytest.approx(mean, rel=1e-9)
        assert means.half_width[cell] == pytest.approx(half_width, rel=1e-9)
    assert math.isnan(means.difference[2])


def test_one_scenario_has_no_interval():
    means = PairedMeans((1,))
    means.add(np.ones(1), np.zeros(1))
    assert means.difference[0] == -1
    assert math.isnan(means.half_width[0])


def study_record(hydros=(), stages=()):
    return StoredStudy(
        {
            "entities": {"hydros": [{"id": id_, "name": name} for id_, name in hydros]},
            "stages": [{"id": id_, "start_date": date} for id_, date in stages],
        }
    )


def match_names(a, b):
    runs = [ComparedRun(name, study_record(hydros=hydros), {}, None) for name, hydros in (("A", a), ("B", b))]
    found = match_entities(*runs, "hydros", *([id_ for id_, _ in hydros] for hydros in (a, b)))
    return [(match.a, match.b) for match in found]


def test_plants_match_by_id_and_name_or_by_unique_name():
    assert match_names([(1, "x"), (2, "y")], [(1, "x"), (2, "y")]) == [(1, 1), (2, 2)]
    assert match_names([(1, "x"), (2, "y")], [(1, "new"), (2, "x"), (3, "y")]) == [(1, 2), (2, 3), (None, 1)]
    assert match_names([(1, "x")], [(1, "z")]) == [(1, None), (None, 1)]
    assert match_names([(1, "x"), (2, "x")], [(2, "x"), (3, "x")]) == [(1, 3), (2, 2)]


def test_stages_match_by_date():
    a = ComparedRun("A", study_record(stages=[(0, "2030-01-01"), (1, "2030-02-01")]), {}, None)
    b = ComparedRun("B", study_record(stages=[(0, "2030-02-01"), (1, "2030-03-01")]), {}, None)
    assert [(match.a, match.b, match.name) for match in match_stages(a, b, [0, 1], [0, 1])] == [(1, 0, "2030-02")]
    without = replace(b, study=StoredStudy({}))
    assert [(match.a, match.b) for match in match_stages(a, without, [0, 1], [1, 2])] == [(1, 1)]
