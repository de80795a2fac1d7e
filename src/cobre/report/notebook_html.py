"""HTML of results for notebooks: a few numbers, and a chart if Matplotlib is installed.

Apart from `figures`, which loads Matplotlib.
"""

from collections.abc import Mapping
from html import escape
from importlib.util import find_spec

from cobre.core.bounds import BOUND_NAMES
from cobre.core.case import facts_table
from cobre.report.bounds import Bounds, SimulationLike, TrainingLike, bounds_of_result
from cobre.report.charts import legend_of
from cobre.runs.labels import CONTROLLED
from cobre.text import duration_spelled, gap_percent, money_spelled


def training_html(result: TrainingLike) -> str:
    """Render the last numbers and the bounds, for `_repr_html_`."""
    bounds = bounds_of_result(result)
    general = {
        "iterations": f"{result.iterations} ({result.stop_reason})",
        "training": duration_spelled(result.training_seconds),
        "digest": result.digest[:16],
    }
    if not len(bounds):
        return _snippet("Training", general, "")
    numbers = {
        "lower bound": money_spelled(bounds.lower[-1]),
        bounds.upper_name: money_spelled(bounds.upper[-1])
        + ("" if bounds.is_exact else f" ± {money_spelled(bounds.half_width[-1])}"),
    }
    if (bound := bounds.computed) is not None:
        spread = f" ± {money_spelled(bound.half_width)}" if bound.confidence else ""
        numbers[BOUND_NAMES[bound.method]] = f"{money_spelled(bound.value)}{spread}"
    if bounds.gap is not None:
        limit = "" if bound is None or not bound.gap_limit else f", {bound.gap_limit}"
        numbers["gap"] = f"{gap_percent(bounds.gap)}{limit}"
    if (judged := result.verdict) is not None:
        numbers = {"verdict": judged.sentence} | numbers
    return _snippet("Training", numbers | general, _draw_bounds(bounds))


def simulation_html(result: SimulationLike) -> str:
    """Render the costs of scenarios and the list of tables, for `_repr_html_`."""
    tables = ", ".join(f"{name} ({table.num_rows:,} rows)" for name, table in result.tables.items())
    numbers = {
        "scenarios": f"{len(result.scenario_costs):,}",
        "mean cost": f"{money_spelled(result.mean_cost)} ± {money_spelled(result.half_width)} at 95 % confidence",
        **_controlled_mean(result),
        "standard deviation": money_spelled(result.std_cost),
        "tables": tables,
        "digest": result.digest[:16],
    }
    if (note := result.cost_note) is not None:
        numbers = {"note": note} | numbers
    return _snippet("Simulation", numbers, "")


def _controlled_mean(result: SimulationLike) -> dict[str, str]:
    mean, half_width = result.controlled_mean_cost, result.controlled_half_width
    if mean is None or half_width is None:
        return {}
    return {CONTROLLED: f"{money_spelled(mean)} ± {money_spelled(half_width)} at 95 % confidence"}


def _draw_bounds(bounds: Bounds) -> str:
    """Draw a figure as SVG with a legend that needs no style sheet."""
    if find_spec("matplotlib") is None:
        return ""
    from cobre.report.figures import (  # noqa: PLC0415 - not everyone has matplotlib
        draw_bounds,
        house_style,
        svg_of,
    )

    names = "".join(
        f'<span style="margin-right:14px"><span style="color:{entry.colour};opacity:{max(entry.strength, 0.5)}">'
        f"&#9632;</span> {escape(entry.name)}</span>"
        for entry in legend_of(bounds)
    )
    with house_style():
        figure, _ = draw_bounds(bounds)
    return f'<div style="font-size:12px">{names}</div>{svg_of(figure, "cobre-bounds", "Bounds by iteration")}'


def _snippet(title: str, rows: Mapping[str, str], chart: str) -> str:
    """Render a heading, a table and a chart in the notebook's colours, without scripts or external resources."""
    return (
        '<div class="cobre-result" style="--ink:currentColor;--muted:currentColor;--grid:#8884;max-width:560px">'
        f"<strong>Cobre {escape(title.lower())}</strong>{facts_table(rows)}{chart}</div>"
    )
