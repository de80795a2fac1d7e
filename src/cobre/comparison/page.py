"""A comparison as one HTML file, in the form of the report, and as a snippet for notebooks."""

from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cobre.comparison.measures import COST, is_certain, title_of, unit_of
from cobre.comparison.result import StudyComparison
from cobre.comparison.text import (
    Row,
    bits_lines,
    cost_sentence,
    decimals_of,
    fixed_point,
    relative_change,
    scale_of,
    scope_sentence,
    spread,
    unmatched_lines,
)
from cobre.core.arrays import Floats
from cobre.io.storage.atomic import write_file
from cobre.report.charts import BAND, BLUE, GREEN, ORANGE, Band, Chart, LegendEntry, Series
from cobre.report.document import document, numbers_of
from cobre.report.section import Section

# Charts of the comparison page: both studies by stage, and the difference with its confidence interval.


DrawnRow = dict[str, Any]


def level_chart(comparison: StudyComparison, quantity: str) -> Chart:
    """Draw a quantity of the whole system by stage, in A and in B."""
    rows = stage_rows(comparison, quantity, None)
    a, b = (column_of(rows, name) for name in ("a", "b"))
    unit = unit_of(quantity)
    means = f"on average {np.nanmean(a):,.4g} {unit} in A and {np.nanmean(b):,.4g} {unit} in B"
    return Chart(
        f"compare-{quantity}",
        title_of(quantity),
        f"{title_of(quantity)} by stage: {means}.",
        unit,
        [row["stage"] for row in rows],
        (Series("A", a, BLUE), Series("B", b, ORANGE, "dash")),
        (),
        (LegendEntry("A", BLUE), LegendEntry("B", ORANGE, "dash")),
    )


def difference_chart(comparison: StudyComparison, quantity: str) -> Chart:
    """Draw the difference B - A of a quantity of the whole system by stage, with its confidence band."""
    rows = stage_rows(comparison, quantity, None)
    difference, half_width = (column_of(rows, name) for name in ("difference", "half_width"))
    unit = unit_of(quantity)
    return Chart(
        f"difference-{quantity}",
        f"{title_of(quantity)}: B - A",
        f"From {np.nanmin(difference):,.4g} to {np.nanmax(difference):,.4g} {unit} by stage.",
        unit,
        [row["stage"] for row in rows],
        (
            Series("B - A", difference, GREEN),
            Series("± 95 %", half_width, drawing="none"),
            Series("low end of the interval", difference - half_width, drawing="none"),
            Series("high end of the interval", difference + half_width, drawing="none"),
        ),
        (Band(3, 2, GREEN, BAND),),
        (LegendEntry("B - A", GREEN), LegendEntry("its 95 % confidence interval", GREEN, "band", BAND)),
    )


def stage_rows(comparison: StudyComparison, quantity: str, entity: int | str | None) -> list[DrawnRow]:
    """Return rows of a quantity and entity (None: the system) by stage. Raises ValueError, with the known names."""
    rows: list[DrawnRow] = [row for row in comparison.all_rows.to_pylist() if row["stage"] is not None]
    quantities = list(dict.fromkeys(row["quantity"] for row in rows if row["entity"] is None and row["a"] is not None))
    if entity is not None:
        quantities = list(dict.fromkeys(row["quantity"] for row in rows))
    if quantity not in quantities:
        raise ValueError(f"there is no {quantity!r} to plot; this comparison has {', '.join(quantities)}")
    rows = [row for row in rows if row["quantity"] == quantity]
    selected = [row for row in rows if _matches_entity(row, entity)]
    if not selected:
        names = ", ".join(dict.fromkeys(str(row["entity"]) for row in rows if row["entity"] is not None))
        raise ValueError(f"{quantity} has no {entity!r}; there are {names}")
    return selected


def _matches_entity(row: DrawnRow, entity: int | str | None) -> bool:
    return row["entity"] is None if entity is None else entity in (row["entity_id"], row["entity"])


def column_of(rows: Sequence[DrawnRow], name: str) -> Floats:
    """Return a column of the rows as an array; NaN where it is None."""
    return np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)


HEAD = ("A", "B", "B \N{MINUS SIGN} A", "\N{PLUS-MINUS SIGN} 95 %", "change")
SCROLL, WHOLE = 'class="scroll"', 'class="scroll" style="max-height:none"'
NO_SIMULATION = "There is nothing to compare in money."
FAINT = ' style="color:var(--muted)"'

HOW_TO_READ = (
    "In faint rows the difference is within its sampling error. The marginal cost of the system is weighted by load, "
    "its water value is the mean over the plants of both studies, and its storage is that at the end of the horizon."
)


def write_page(comparison: StudyComparison, target: Path) -> Path:
    """Write the page, completely or not at all; returns its path. Raises WriteError."""
    write_file(target, page_of(comparison).encode())
    return target


def page_of(comparison: StudyComparison) -> str:
    """Render the comparison as a self-contained HTML page."""
    names = [Path(name).name or name for name in comparison.names]
    sections = [] if comparison.money is None else _sections(comparison)
    headline = f'<section class="card wide">{_bits(comparison)}{_headline(comparison)}</section>'
    return document(
        f"A: {names[0]}, B: {names[1]}",
        scope_sentence(comparison) or NO_SIMULATION,
        "\n".join([headline, *(section.html() for section in sections)]),
        {"format_version": 1, **numbers_of(sections)},
        brand="Cobre comparison",
        contents=[(section.key, section.title) for section in sections],
    )


def snippet(comparison: StudyComparison) -> str:
    """Render the headline, the summary and the cost by stage in the notebook's colours, for `_repr_html_`."""
    inner = _headline(comparison)
    if comparison.money is not None:
        inner += _summary(comparison) + _cost_figure(comparison)
    style = (
        ".cobre-compare table{border-collapse:collapse;font-size:12px;margin:6px 0}.cobre-compare td,"
        ".cobre-compare th{padding:1px 8px;text-align:left}.cobre-compare .num{text-align:right;"
        "font-variant-numeric:tabular-nums;white-space:nowrap}.cobre-compare td.part{padding-left:20px}"
    )
    colours = "--ink:currentColor;--muted:currentColor;--grid:#8884"
    return f'<div class="cobre-compare" style="{colours};max-width:720px"><style>{style}</style>{inner}</div>'


def _cost_figure(comparison: StudyComparison) -> str:
    if find_spec("matplotlib") is None:
        return ""
    from cobre.comparison.figures import plot
    from cobre.report.figures import svg_of

    return svg_of(plot(comparison, COST, None), "cobre-compare", "Cost by stage in both studies, and its difference")


def _bits(comparison: StudyComparison) -> str:
    if comparison.bits is None:
        return ""
    first, *others = bits_lines(comparison.bits)
    style = "white-space:pre-wrap;overflow-wrap:anywhere"
    more = f'<details><summary>Digests</summary><pre style="{style}">{escape(chr(10).join(others))}</pre></details>'
    return f'<p style="overflow-wrap:anywhere"><b>Bits:</b> {escape(first)}</p>{more}'


def _headline(comparison: StudyComparison) -> str:
    if comparison.money is None:
        lines = list(comparison.notes)
    else:
        lines = [*unmatched_lines(comparison), *(f"Note: {note}" for note in comparison.notes)]
    sentence = "" if comparison.money is None else cost_sentence(comparison)
    first = f'<p style="font-size:20px;font-weight:600;margin:4px 0">{escape(sentence)}</p>' if sentence else ""
    return first + "".join(f"<p>{escape(line)}</p>" for line in lines)


def _sections(comparison: StudyComparison) -> list[Section]:
    stages = comparison.stages.to_pylist()
    quantities = list(dict.fromkeys(row["quantity"] for row in stages))
    changed = [key for key in quantities if any(row["difference"] for row in stages if row["quantity"] == key)]
    same = [title_of(key).lower() for key in quantities if key not in changed]
    charts = [make(comparison, key) for key in changed for make in (level_chart, difference_chart)]
    unchanged = f"Unchanged in every stage: {', '.join(same)}." if same else ""
    return [
        Section("summary", "In total", [_card(_summary(comparison).replace(SCROLL, WHOLE))], HOW_TO_READ),
        Section("stages", "By stage", [*charts, _card(_stage_tables(comparison, quantities))], unchanged),
        Section("entities", "By plant, bus and line", [_card(_entity_tables(comparison))]),
    ]


def _card(html: str) -> str:
    return f'<div class="card table wide">{html}</div>'


def _summary(comparison: StudyComparison) -> str:
    rows = comparison.summary.to_pylist()
    cost = [row for row in rows if row["quantity"] == COST]
    lines = []
    for row in rows:
        css = ' class="part" style="padding-left:32px"' if row["component"] else ""
        title = f"<td{css}>{escape(row['component'] or row['title'])}</td>"
        lines.append(_number_row(title, row, cost if row["quantity"] == COST else [row]))
    return _table("The system over the whole horizon", ["", "unit", *HEAD], lines)


def _number_row(first: str, row: Row, alike: Sequence[Row]) -> str:
    """Render a row of numbers; a difference within its sampling error is faint."""
    divisor, unit = scale_of(alike, row["unit"])
    decimals = decimals_of(alike, divisor)
    numbers = [fixed_point(row[name], divisor, decimals) for name in ("a", "b")]
    numbers += [
        fixed_point(row["difference"], divisor, decimals, has_sign=True),
        spread(row, divisor, decimals),
        relative_change(row),
    ]
    half_width = float("inf") if row["half_width"] is None else row["half_width"]
    css = "" if is_certain(row["difference"] or 0.0, half_width) else FAINT
    cells = "".join(f'<td class="num">{escape(number)}</td>' for number in numbers)
    return f"<tr{css}>{first}<td>{escape(unit)}</td>{cells}</tr>"


def _stage_tables(comparison: StudyComparison, quantities: Sequence[str]) -> str:
    rows = comparison.stages.to_pylist()
    tables = []
    for key in quantities:
        rows_of_key = [row for row in rows if row["quantity"] == key]
        lines = [_number_row(f"<td>{escape(row['stage'])}</td>", row, rows_of_key) for row in rows_of_key]
        tables.append(_folded(title_of(key), ["stage", "unit", *HEAD], lines))
    return "".join(tables)


def _entity_tables(comparison: StudyComparison) -> str:
    rows = comparison.entities.to_pylist()
    tables = []
    for key in dict.fromkeys(row["quantity"] for row in rows):
        rows_of_key = [row for row in rows if row["quantity"] == key]
        lines = [_number_row(f"<td>{escape(_entity(row))}</td>", row, rows_of_key) for row in rows_of_key]
        tables.append(_folded(title_of(key), ["", "unit", *HEAD], lines))
    return "".join(tables)


def _entity(row: Row) -> str:
    return row["entity"] if row["present_in"] == "both" else f"{row['entity']} (only in {row['present_in']})"


def _folded(title: str, head: Sequence[str], lines: Sequence[str]) -> str:
    return f"<details><summary>{escape(title)}</summary>{_table(title, head, lines)}</details>"


def _table(title: str, head: Sequence[str], lines: Sequence[str]) -> str:
    cells = "".join(
        f'<th scope="col"{" class=num" if column > 1 else ""}>{escape(text)}</th>' for column, text in enumerate(head)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}"><table><thead><tr>{cells}</tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
