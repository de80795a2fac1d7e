"""Extra outputs hold the values that the study used."""

import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from contexts import context_of, iterated
from pyarrow import parquet
from small_cases import SmallCase, as_table, hydro, thermal

import cobre
from cobre.core.config import ExportsConfig
from cobre.io.case import load_case
from cobre.io.output.results import read_results
from cobre.study.output.exports import states_table, write_state_export, write_study_exports
from cobre.study.preparation.prepare import prepare

FOUR_REGIONS = Path(__file__).resolve().parents[4] / "examples" / "four_regions"
SEASONS = {
    "cycle_type": "monthly",
    "seasons": [{"id": month, "label": f"M{month}", "month_start": month + 1} for month in range(12)],
}
EVERYTHING = ExportsConfig(states=True, stochastic=True, fpha_deviation_points=True)


def with_exports(study, exports=EVERYTHING):
    """Return the same study with these exports."""
    config = replace(study.case.config, exports=exports)
    return replace(study, case=replace(study.case, config=config))


def small(**others):
    return SmallCase(
        hydros=[hydro(0), hydro(3)],
        thermals=[thermal(0, 10.0, 20.0), thermal(1, 90.0, 60.0)],
        stages=3,
        openings=2,
        load={0: 60.0},
        inflow={0: (18.0, 6.0), 3: (9.0, 2.0)},
        storage={0: 40.0, 3: 25.0},
        forward_passes=2,
        **others,
    )


def test_exported_states_are_entering_states(tmp_path):
    folder = small().write(tmp_path)
    context, study = context_of(folder, exports_states=True), with_exports(prepare(load_case(folder)))
    iterated(context, 3)
    write_state_export(tmp_path / "out", study, context.state.visited)
    table = read_results(tmp_path / "out" / "states")["states"]
    assert table.column_names == ["iteration", "stage_id", "forward_pass", "storage:0", "storage:3"]
    assert table.num_rows == 3 * 3 * 2
    rows = table.to_pylist()
    assert [(r["iteration"], r["stage_id"], r["forward_pass"]) for r in rows] == [
        (iteration, stage, path) for iteration in (1, 2, 3) for stage in range(3) for path in range(2)
    ]
    assert all((row["storage:0"], row["storage:3"]) == (40.0, 25.0) for row in rows if row["stage_id"] == 0)
    *_, last = context.state.visited.tables()
    last = last.reshape(2, 3, 2)
    assert [rows[-1]["storage:0"], rows[-1]["storage:3"]] == last[1, 2].tolist()


def test_export_without_states_is_an_empty_table(tmp_path):
    study = prepare(load_case(small().write(tmp_path)))
    assert states_table(study, []).num_rows == 0


def test_only_requested_exports_are_written(tmp_path):
    study = prepare(load_case(small().write(tmp_path / "case")))
    write_study_exports(tmp_path / "out", study)
    write_state_export(tmp_path / "out", study, [np.zeros((2, 6))])
    assert not (tmp_path / "out").exists()


def test_training_with_exported_noise_has_same_bits(tmp_path):
    """Check that statistics, memory, correlation and openings as files of a case change no bit of training."""
    study = with_exports(prepare(load_case(FOUR_REGIONS)), ExportsConfig(stochastic=True))
    write_study_exports(tmp_path / "out", study)
    case = shutil.copytree(FOUR_REGIONS, tmp_path / "case")
    for file in (tmp_path / "out" / "stochastic").iterdir():
        if file.name != "manifest.json" and parquet_rows(file) != 0:
            shutil.copy(file, case / "scenarios" / file.name)
    overrides = {"training.scenario_source.openings": {"source": "file"}}
    again = cobre.train(case, threads=1, iterations=2, config_overrides=overrides)
    assert again.digest == cobre.train(FOUR_REGIONS, threads=1, iterations=2).digest


def parquet_rows(file):
    return parquet.read_metadata(file).num_rows if file.suffix == ".parquet" else None


def test_fitted_model_is_exported_as_case_files(tmp_path):
    """Compare a model estimated from history with the same study that reads the exported one."""
    years, rng = range(1985, 2024), np.random.default_rng(3)
    noise = {number: ar_walk(rng, 12 * len(years)) for number in (0, 3)}
    rows = [
        {"hydro_id": number, "start_date": first_day(year, month), "end_date": first_day(year, month + 1)}
        | {"value_m3s": float(noise[number][12 * (year - 1985) + month])}
        for number in (0, 3)
        for year in years
        for month in range(12)
    ]
    case = small(stage_fields={n: {"season_id": n, "state_variables": {"inflow_lags": True}} for n in range(3)})
    case.inflow = {}
    folder = case.write(tmp_path / "case")
    stages = json.loads((folder / "stages.json").read_text())
    (folder / "stages.json").write_text(json.dumps(stages | {"season_definitions": SEASONS}))
    write_history(folder, rows)
    study = with_exports(prepare(load_case(folder)), ExportsConfig(stochastic=True))
    write_study_exports(tmp_path / "out", study)
    tables = read_results(tmp_path / "out" / "stochastic")
    coefficients = tables["inflow_ar_coefficients"].to_pylist()
    assert {row["hydro_id"] for row in coefficients} == {0, 3}
    assert tables["inflow_seasonal_stats"].num_rows == 2 * 3
    for name in ("inflow_seasonal_stats", "inflow_ar_coefficients"):
        parquet.write_table(tables[name], folder / "scenarios" / f"{name}.parquet", compression="zstd")
    given = prepare(load_case(folder)).noise
    # Without statistics of the months before, lags that reach back beyond the study take no part: compare the others.
    assert given.ar_coefficients[2, 0] == pytest.approx(study.noise.ar_coefficients[2, 0], rel=1e-12)
    assert (study.noise.ar_coefficients[2, 0] != 0.0).all()
    correlation = json.loads((tmp_path / "out" / "stochastic" / "correlation.json").read_text())
    assert {row["stage_id"] for row in correlation["schedule"]} == {0, 1, 2}


def ar_walk(rng, count):
    values = [20.0]
    for shock in rng.normal(0.0, 2.0, count - 1):
        values.append(20.0 + 0.7 * (values[-1] - 20.0) + shock)
    return values


def first_day(year, month):
    return date(year + month // 12, month % 12 + 1, 1)


def write_history(folder, rows):
    columns = {
        "hydro_id": pa.array([row["hydro_id"] for row in rows], pa.int32()),
        "start_date": pa.array([row["start_date"] for row in rows], pa.date32()),
        "end_date": pa.array([row["end_date"] for row in rows], pa.date32()),
        "value_m3s": pa.array([row["value_m3s"] for row in rows], pa.float64()),
    }
    parquet.write_table(pa.table(columns), folder / "scenarios" / "inflow_history.parquet", compression="zstd")


# v, q, exact, fitted, relative: what the Rust program says of the same plant (cobre-python 0.18.0).
DEVIATIONS = [
    (0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 50.0, 6.9651981, 6.640103684, 0.009704518),
    (50.0, 12.5, 5.166891745, 7.983934191, 0.084092611),
    (100.0, 25.0, 13.015834041, 15.967868382, 0.088122306),
    (200.0, 50.0, 33.4992861, 31.935736764, 0.046674109),
]


@pytest.fixture
def fitted_plant(tmp_path):
    """Return one plant whose planes are fitted, and one with a constant productivity."""
    tail = {"tailrace": {"type": "polynomial", "coefficients": [3.0, 0.02, 1e-4]}}
    losses = {"hydraulic_losses": {"type": "factor", "value": 0.02}, "efficiency": {"type": "constant", "value": 0.92}}
    plant = hydro(0, storage=(0.0, 200.0), model="fpha", **tail, **losses)
    plant["specific_productivity_mw_per_m3s_per_m"] = 0.009
    case = SmallCase(hydros=[plant, hydro(3)], thermals=[thermal(0, 10.0, 90.0)], load={0: 60.0}, storage={0: 90.0})
    volumes = (0.0, 50.0, 100.0, 150.0, 200.0)
    rows = [
        {"hydro_id": 0, "volume_hm3": v, "height_m": 20.0 + 60.0 * (v / 200.0) ** 0.5, "area_km2": 1.0 + v / 100.0}
        for v in volumes
    ]
    folder = case.write(tmp_path / "case")
    parquet.write_table(as_table(rows), folder / "system" / "hydro_geometry.parquet", compression="zstd")
    path = folder / "system" / "hydro_production_models.json"
    content = json.loads(path.read_text())
    content["production_models"][0]["stage_ranges"][0]["fpha_config"] = {"source": "computed"}
    path.write_text(json.dumps(content))
    return folder


def test_deviations_of_fitted_planes(tmp_path, fitted_plant):
    study = with_exports(prepare(load_case(fitted_plant)), ExportsConfig(fpha_deviation_points=True))
    write_study_exports(tmp_path / "out", study)
    tables = read_results(tmp_path / "out" / "hydro_models")
    rows = tables["fpha_deviation_points"].to_pylist()
    assert len(rows) == 2 * 25
    assert {(row["hydro_id"], row["stage_id"]) for row in rows} == {(0, 0), (0, 1)}
    found = {(row["v"], row["q"]): row for row in rows if row["stage_id"] == 1}
    for volume, flow, exact, fitted, relative in DEVIATIONS:
        row = found[volume, flow]
        values = (row["fph_exact"], row["fpha_fitted"], row["relative"])
        assert values == pytest.approx((exact, fitted, relative), abs=1e-8)
        assert row["deviation"] == pytest.approx(fitted - exact, abs=1e-8)


def test_training_with_exported_planes_has_same_bound(tmp_path, fitted_plant):
    study = with_exports(prepare(load_case(fitted_plant)), ExportsConfig(fpha_deviation_points=True))
    write_study_exports(tmp_path / "out", study)
    planes = tmp_path / "out" / "hydro_models" / "fpha_hyperplanes.parquet"
    assert parquet_rows(planes) == 2 * 11
    fitted = cobre.train(fitted_plant, threads=1, iterations=3)
    shutil.copy(planes, fitted_plant / "system" / planes.name)
    path = fitted_plant / "system" / "hydro_production_models.json"
    path.write_text(path.read_text().replace('"computed"', '"precomputed"'))
    given = cobre.train(fitted_plant, threads=1, iterations=3)
    assert given.digest == fitted.digest
    assert given.lower_bound > 0.0
