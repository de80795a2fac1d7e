"""Bounds and fans as Matplotlib figures, which users can modify."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cobre.report.bounds import Bounds
from cobre.report.canvas import label_stages, one_axes, whole_numbers
from cobre.report.fan_charts import INNER, OUTER
from cobre.report.palette import BLUE, ORANGE
from cobre.report.simulated import Fan
from cobre.runs.formatting import scale_for

EDGE = 0.7  # width of the lines that mark the ends of a faint band


def draw_bounds(bounds: Bounds) -> tuple[Figure, Axes]:
    """Draw both bounds by iteration with Matplotlib."""
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


def draw_fan(fan: Fan, unit: str, colour: str) -> tuple[Figure, Axes]:
    """Draw a fan over stages: two bands, the median, and the mean as a dashed line."""
    drawn = np.vstack([fan.percentiles, fan.mean])
    finite = drawn[np.isfinite(drawn)]
    divisor, scaled = scale_for(float(np.max(np.abs(finite), initial=0.0)), unit)
    figure, axes = one_axes(scaled)
    x = np.arange(len(fan.labels))
    p5, p25, p50, p75, p95 = fan.percentiles / divisor
    axes.fill_between(x, p5, p95, color=colour, alpha=OUTER, linewidth=0)
    axes.fill_between(x, p25, p75, color=colour, alpha=INNER, linewidth=0)
    for end in (p5, p95):
        axes.fill_between(x, end, end, color=colour, linewidth=EDGE)
    axes.plot(x, p50, color=colour, marker="o" if len(x) == 1 else "")
    axes.plot(x, fan.mean / divisor, color=colour, linestyle="--", linewidth=1.2, marker="_" if len(x) == 1 else "")
    label_stages(axes, fan.labels)
    if np.min(finite, initial=0.0) >= 0:
        axes.set_ylim(bottom=0)
    return figure, axes


def _largest(*arrays: np.ndarray) -> float:
    found = np.concatenate(arrays)
    return float(np.max(np.abs(found[np.isfinite(found)]), initial=0.0))
