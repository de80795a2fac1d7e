"""Small systems whose inflow model is estimated from history, in the files of the case format."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from small_system import SmallHydro, SmallSystem, SmallThermal, write_case

FIRST_STUDY_YEAR = 2024
MONTHS = 12
Rows = list[tuple[float, ...]]


def series(years: int, hydros: int, seed: int, phi: float = 0.5) -> np.ndarray:
    """Return monthly inflows (year, month, hydro) of plants that share part of their weather, to two digits."""
    rng = np.random.default_rng(seed)
    standard = np.zeros((MONTHS * (years + 10), hydros))
    for t in range(1, len(standard)):
        noise = 0.5 * rng.normal() + 0.85 * rng.normal(size=hydros)
        standard[t] = phi * standard[t - 1] + 0.8 * noise
    months = np.arange(MONTHS)
    mean = 100.0 + 40.0 * np.sin(months / 6 * np.pi)
    std = 15.0 + 5.0 * np.cos(months / 6 * np.pi)
    kept = standard[-MONTHS * years :].reshape(years, MONTHS, hydros)
    return np.round(mean[None, :, None] + std[None, :, None] * kept, 2)


def write_history_case(
    folder: Path,
    values: np.ndarray,
    estimation: dict | None = None,
    statistics: Rows | None = None,
    coefficients: Rows | None = None,
    correlation: list[list[float]] | None = None,
) -> Path:
    """Write a study of one year after a history (year, month, hydro) that ends with 2023; NaN: not observed."""
    hydros = values.shape[2]
    write_case(folder, _system(hydros), forward_passes=1, iterations=1)
    scenarios = folder / "scenarios"
    for name in ("noise_openings", "inflow_seasonal_stats"):
        (scenarios / f"{name}.parquet").unlink()
    if not np.isnan(values).all():
        pq.write_table(_history(values), scenarios / "inflow_history.parquet", compression="zstd")
    if statistics is not None:
        _write(scenarios / "inflow_seasonal_stats.parquet", "hydro_id stage_id mean_m3s std_m3s", statistics)
    if coefficients is not None:
        _write(scenarios / "inflow_ar_coefficients.parquet", "hydro_id stage_id lag coefficient", coefficients)
    if correlation is not None:
        (scenarios / "correlation.json").write_text(json.dumps(_correlation(correlation)))
    _configure(folder, estimation or {})
    return folder


def _system(hydros: int) -> SmallSystem:
    plant = SmallHydro(0, None, 0.0, 200.0, 50.0, 150.0, 1.0, 0.0, 100.0, 20.0)
    return SmallSystem(
        loads=((100.0 * hydros,),) * MONTHS,
        noise=(((0.0,) * hydros,) * 5,) * MONTHS,
        hours=(730.0,),
        load_factors=(1.0,),
        hydros=(plant,) * hydros,
        thermals=(SmallThermal(0, 100.0, 0.0, 50.0),),
    )


def _configure(folder: Path, estimation: dict) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["training"].pop("scenario_source")
    config["modeling"] = {"inflow_non_negativity": {"method": "penalty"}}
    config |= {"estimation": estimation, "exports": {"stochastic": True}}
    (folder / "config.json").write_text(json.dumps(config))
    stages = json.loads((folder / "stages.json").read_text())
    stages.pop("pre_study_stages")
    for stage in stages["stages"]:
        stage["state_variables"]["inflow_lags"] = True
    (folder / "stages.json").write_text(json.dumps(stages))


def _history(values: np.ndarray) -> pa.Table:
    first = FIRST_STUDY_YEAR - len(values)
    places = [tuple(place) for place in np.argwhere(~np.isnan(values))]
    ends = [(first + year + (month + 1) // MONTHS, (month + 1) % MONTHS) for year, month, _ in places]
    return pa.table(
        {
            "hydro_id": pa.array([hydro for _, _, hydro in places], pa.int32()),
            "start_date": pa.array([date(first + year, month + 1, 1) for year, month, _ in places], pa.date32()),
            "end_date": pa.array([date(year, month + 1, 1) for year, month in ends], pa.date32()),
            "value_m3s": pa.array([values[place] for place in places], pa.float64()),
        }
    )


def _write(path: Path, names: str, rows: Rows) -> None:
    columns = {}
    for index, name in enumerate(names.split()):
        kind = pa.int32() if name in ("hydro_id", "stage_id", "lag") else pa.float64()
        columns[name] = pa.array([row[index] for row in rows], kind)
    pq.write_table(pa.table(columns), path, compression="zstd")


def _correlation(matrix: list[list[float]]) -> dict:
    entities = [{"type": "inflow", "id": index} for index in range(len(matrix))]
    group = {"name": "all", "entities": entities, "matrix": matrix}
    return {"method": "spectral", "profiles": {"default": {"correlation_groups": [group]}}}
