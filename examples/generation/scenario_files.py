"""The files of `scenarios/`: random inflows, loads and wind, and their seasonal variation."""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

from generation.files import Files, table
from generation.horizon import Horizon, seasonal
from generation.system import HydroPlant, System


def scenario_files(system: System, horizon: Horizon, correlation: float) -> Files:
    """Return statistics of inflow, load and wind; `correlation`: of the inflows of any two plants."""
    files: dict[str, Any] = {
        "scenarios/inflow_seasonal_stats.parquet": _inflow_stats(system, horizon),
        "scenarios/load_seasonal_stats.parquet": _load_stats(system, horizon),
    }
    if any(plant.inflow.memory for plant in system.hydros):
        files["scenarios/inflow_ar_coefficients.parquet"] = _memory(system, horizon)
    if len(horizon.blocks) > 1:
        factors = [block.load_factor for block in horizon.blocks]
        files["scenarios/load_factors.json"] = _factors("load_factors", "bus_id", len(system.buses), horizon, factors)
    if system.winds:
        files["scenarios/non_controllable_stats.parquet"] = _wind_stats(system, horizon)
        key, factors = "non_controllable_factors", [block.wind_factor for block in horizon.blocks]
        files[f"scenarios/{key}.json"] = _factors(key, "ncs_id", len(system.winds), horizon, factors)
    if correlation:
        files["scenarios/correlation.json"] = _correlation(len(system.hydros), correlation)
    return files


def _by_stage(count: int, horizon: Horizon) -> list[tuple[int, int]]:
    return list(product(range(count), range(horizon.stages)))


def _stats(
    words: Sequence[str], count: int, horizon: Horizon, mean: Callable[[int, int], float], spread: Sequence[float]
) -> Any:
    """Return a table of means and standard deviations, by entity and stage."""
    keys = _by_stage(count, horizon)
    means = [round(mean(index, stage), 4) for index, stage in keys]
    stds = [round(value * spread[index], 4) for (index, _), value in zip(keys, means, strict=True)]
    entity, mean_word, std_word = words
    columns: dict[str, list[Any]] = {
        entity: [index for index, _ in keys],
        "stage_id": [stage for _, stage in keys],
        mean_word: means,
        std_word: stds,
    }
    return table(**columns)


def _inflow_stats(system: System, horizon: Horizon) -> Any:
    spread = [plant.inflow.variation for plant in system.hydros]

    def mean(index: int, stage: int) -> float:
        return mean_inflow(system.hydros[index], stage)

    return _stats(("hydro_id", "mean_m3s", "std_m3s"), len(system.hydros), horizon, mean, spread)


def mean_inflow(plant: HydroPlant, stage: int) -> float:
    """Return the mean inflow of a month, m3/s."""
    return plant.inflow.mean_m3s * seasonal(plant.inflow.swing, plant.inflow.peak_month, stage)


def _load_stats(system: System, horizon: Horizon) -> Any:
    spread = [bus.load_variation for bus in system.buses]

    def mean(index: int, stage: int) -> float:
        bus = system.buses[index]
        return bus.load_mw * seasonal(bus.load_swing, bus.peak_month, stage)

    return _stats(("bus_id", "mean_mw", "std_mw"), len(system.buses), horizon, mean, spread)


def _wind_stats(system: System, horizon: Horizon) -> Any:
    spread = [farm.variation for farm in system.winds]

    def mean(index: int, stage: int) -> float:
        farm = system.winds[index]
        return farm.mean_share * seasonal(farm.swing, farm.peak_month, stage)

    return _stats(("ncs_id", "mean", "std"), len(system.winds), horizon, mean, spread)


def _memory(system: System, horizon: Horizon) -> Any:
    """Return coefficients that are the same in every month."""
    rows = [
        (index, stage, lag, value)
        for index, stage in _by_stage(len(system.hydros), horizon)
        for lag, value in enumerate(system.hydros[index].inflow.memory, start=1)
    ]
    hydros, stages, lags, values = (list(column) for column in zip(*rows, strict=True))
    return table(hydro_id=hydros, stage_id=stages, lag=lags, coefficient=values)


def _factors(key: str, word: str, count: int, horizon: Horizon, factors: Sequence[float]) -> dict[str, Any]:
    blocks = [{"block_id": index, "factor": factor} for index, factor in enumerate(factors)]
    rows = [{word: index, "stage_id": stage, "block_factors": blocks} for index, stage in _by_stage(count, horizon)]
    return {key: rows}


def _correlation(count: int, value: float) -> dict[str, Any]:
    """Return correlations that decrease with the distance of two plants in the list."""
    powers = [1.0]
    powers += [round(value**distance, 6) for distance, _ in enumerate(pairwise(range(count)), start=1)]
    matrix = [[powers[abs(row - column)] for column in range(count)] for row in range(count)]
    group = {
        "name": "rivers",
        "entities": [{"type": "inflow", "id": index} for index in range(count)],
        "matrix": matrix,
    }
    return {"method": "spectral", "profiles": {"default": {"correlation_groups": [group]}}}
