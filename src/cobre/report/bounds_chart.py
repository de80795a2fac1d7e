"""Convergence: the lower bound against the sampled upper bound with its confidence band."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cobre.report.bounds import Bounds
from cobre.report.canvas import house_style, one_axes, whole_numbers
from cobre.report.chart import Chart, Mark, Series, panel_of
from cobre.report.palette import BLUE, ORANGE
from cobre.report.units import money, scale_for


def legend_of(bounds: Bounds) -> tuple[Mark, ...]:
    """An exact bound has no band."""
    band = () if bounds.is_exact else (Mark("its 95 % confidence band", ORANGE, "band", 0.25),)
    return (Mark("lower bound", BLUE), Mark(bounds.upper_name, ORANGE), *band)


def bounds_chart(bounds: Bounds, key: str, title: str) -> Chart:
    """All iterations that are given."""
    with house_style():
        figure, axes = draw_bounds(bounds)
    series = (
        Series("lower bound", bounds.lower),
        Series("upper bound", bounds.upper),
        Series("± 95 %", bounds.half_width),
    )
    labels = [f"iteration {number}" for number in bounds.iteration]
    panel = panel_of(axes, "", "$", bounds.iteration.tolist(), labels, series)
    said = f"from {money(bounds.lower[0])} to {money(bounds.lower[-1])} in {len(bounds)} iterations"
    return Chart(key, title, f"The lower bound goes {said}.", figure, (panel,), legend_of(bounds))


def draw_bounds(bounds: Bounds) -> tuple[Figure, Axes]:
    """Lines, a band and final limits."""
    low, high = bounds.upper - bounds.half_width, bounds.upper + bounds.half_width
    divisor, unit = scale_for(_largest(bounds.lower, high), "$")
    figure, axes = one_axes(f"{unit} by iteration")
    x = bounds.iteration
    mark = "o" if len(x) == 1 else ""
    axes.fill_between(x, low / divisor, high / divisor, color=ORANGE, alpha=0.25, linewidth=0)
    axes.plot(x, bounds.upper / divisor, color=ORANGE, linewidth=1.2, marker=mark)
    axes.plot(x, bounds.lower / divisor, color=BLUE, linewidth=2.2, marker=mark)
    whole_numbers(axes, x[0], x[-1])
    return figure, axes


def _largest(*arrays: np.ndarray) -> float:
    found = np.concatenate(arrays)
    return float(np.max(np.abs(found[np.isfinite(found)]), initial=0.0))
