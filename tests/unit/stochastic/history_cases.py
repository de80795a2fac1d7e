"""Histories drawn from a known PAR model, and cases that are fitted to them."""

import numpy as np
from noise_cases import make_case, monthly_history, stages

SPATIAL = np.array([[1.0, 0.6], [0.6, 1.0]])


def simulated(years, phi, seed=1, hydros=2):
    """Return monthly inflows (year, month, hydro) of a PAR model: `phi[month]` are standardised coefficients."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(SPATIAL[:hydros, :hydros])
    count = 12 * (years + 10)
    standard = np.zeros((count, hydros))
    for t in range(12, count):
        for lag, value in enumerate(phi[t % 12], start=1):
            standard[t] += value * standard[t - lag]
        standard[t] += factor @ rng.normal(size=hydros) * 0.7
    months = np.arange(12)
    mean, std = 100.0 + 40.0 * np.sin(months / 6 * np.pi), 15.0 + 5.0 * np.cos(months / 6 * np.pi)
    kept = standard[120:].reshape(years, 12, hydros)
    return mean[None, :, None] + std[None, :, None] * kept + 10.0 * np.arange(hydros)


def estimated_case(values, count=12, first_year=1900, **tables):
    start = (first_year + len(values), 1)
    return make_case(
        hydros=values.shape[2],
        horizon_stages=stages(count, start, with_seasons=True),
        with_seasons=True,
        inflow_history=monthly_history(values, first_year),
        **tables,
    )
