"""HTML of the progress table in a notebook."""

from collections.abc import Sequence
from html import escape

from cobre.core.bounds import BOUND_NAMES
from cobre.runs.events import Event
from cobre.runs.view import RunView
from cobre.text import duration_compact, gap_percent, money

CURVE_WIDTH, CURVE_HEIGHT, MAX_POINTS = 220, 36, 110


def progress_html(view: RunView) -> str:
    """Render the state of a run as an HTML table in the notebook's colours, without scripts or external resources."""
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:500;opacity:.75">{escape(name)}</th>'
        f'<td style="text-align:left">{value}</td></tr>'
        for name, value in _rows(view).items()
    )
    return f'<div class="cobre-progress"><strong>Cobre</strong> {escape(view.phase)}<table>{rows}</table></div>'


def _rows(view: RunView) -> dict[str, str]:
    progress = {"now": escape(view.progress_in_words)} if view.progress is not None else {}
    event = view.last
    if event is None:
        return progress
    limit = f" of {view.iteration_limit}" if view.iteration_limit else ""
    rows = {
        "iteration": f"{event['iteration']}{limit}, {duration_compact(event.get('elapsed_s'))}",
        "lower bound": f"{money(event['lower_bound'])} $ {_curve(view.bounds.lower)}",
        view.path_costs.name: _upper_bound(view, event),
    }
    if (bound := view.computed_bound) is not None:
        spread = f" ± {money(bound.half_width)}" if bound.confidence else ""
        rows[BOUND_NAMES[bound.method]] = f"{money(bound.value)}{spread} $"
    if view.gap is not None:
        limit = "" if bound is None or not bound.gap_limit else f", {bound.gap_limit}"
        rows["gap"] = f"{gap_percent(view.gap)}{limit}"
    if len(view.loads) > 1:
        rows["busy"] = ", ".join(f"{100 * total.busy_share:.0f} %" for total in view.loads)
    if view.warnings:
        rows["warnings"] = str(len(view.warnings))
    return rows | progress


def _upper_bound(view: RunView, event: Event) -> str:
    spread = "" if view.is_exact else f" ± {money(event['half_width'])}"
    return f"{money(event['upper_bound'])}{spread} $ ({view.path_costs.label})"


def _curve(values: Sequence[float]) -> str:
    """Draw the lower bound so far as a line, thinned out to `MAX_POINTS` points."""
    if not values:
        return ""
    plotted = values[:: max(1, -(-len(values) // MAX_POINTS))]
    low, high = min(plotted), max(plotted)
    step_x, scale_y = CURVE_WIDTH / max(1, len(plotted) - 1), (CURVE_HEIGHT - 4) / ((high - low) or 1.0)
    points = " ".join(
        f"{index * step_x:.1f},{CURVE_HEIGHT - 2 - (value - low) * scale_y:.1f}" for index, value in enumerate(plotted)
    )
    return (
        f'<svg width="{CURVE_WIDTH}" height="{CURVE_HEIGHT}" role="img" aria-label="lower bound by iteration" '
        f'style="vertical-align:middle"><polyline points="{points}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        "</svg>"
    )
