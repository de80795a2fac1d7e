"""Inverts the noise model: the noise vectors with which it reproduces given trajectories."""

from collections.abc import Sequence

import numpy as np

from cobre.core.arrays import Floats
from cobre.stochastic.errors import NoiseModelError
from cobre.stochastic.par.memory import InflowMemory
from cobre.stochastic.par.model import InflowModel

# What counts as equal where a model has no noise, relative to the values.
_SAME = 1e-9


def inflow_noise(model: InflowModel, memory: InflowMemory, values: Floats, file: str, ids: Sequence[int]) -> Floats:
    """Noise (stage, trajectory, hydro) with which the model gives `values`, starting from what the study remembers."""
    lags = np.repeat(memory.first[:, None, :], values.shape[1], axis=1)
    noise = np.zeros(values.shape)
    for stage, inflow in enumerate(values):
        expected = np.broadcast_to(model.base_m3s[stage], inflow.shape)
        for lag, past in enumerate(lags):
            expected = expected + memory.psi[stage, lag] * past
        noise[stage] = _invert(inflow, expected, model.sigma_m3s[stage], file, f"stage number {stage}", ids)
        lags = memory.after(stage, lags, inflow)
    return noise


def memoryless_noise(mean: Floats, std: Floats, values: Floats, file: str, ids: Sequence[int]) -> Floats:
    """Noise (stage, trajectory, entity) with which mean and deviation (stage, entity) give `values`."""
    noise = np.zeros(values.shape)
    for stage, value in enumerate(values):
        expected = np.broadcast_to(mean[stage], value.shape)
        noise[stage] = _invert(value, expected, std[stage], file, f"stage number {stage}", ids)
    return noise


def _invert(values: Floats, expected: Floats, sigma: Floats, file: str, where: str, ids: Sequence[int]) -> Floats:
    difference = values - expected
    silent = sigma == 0.0
    unreachable = (silent & (np.abs(difference) > _SAME * np.maximum(1.0, np.abs(values)))).any(axis=0)
    if unreachable.any():
        entity_id = ids[int(np.flatnonzero(unreachable)[0])]
        raise NoiseModelError(
            file,
            f"id {entity_id}, {where}",
            "the model has no noise there (standard deviation 0) and cannot produce this value; give a standard "
            "deviation above 0, or use the same scheme for training",
        )
    result: Floats = np.where(silent, 0.0, difference / np.where(silent, 1.0, sigma))
    return result
