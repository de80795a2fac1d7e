"""A comparison as text for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cobre.comparison.measures import COST, is_certain
from cobre.comparison.result import StudyComparison
from cobre.runs.bit_comparison import Comparison
from cobre.runs.labels import NEGLIGIBLE
from cobre.text import NO_VALUE, digits, scale_for, singular

Row = Mapping[str, Any]

MAX_SHARE, MIN_SHARE = 10.0, 1e-4
ABOUT_EQUAL = 5e-4
"""Relative changes up to this are not listed among the largest changes."""


def scale_of(rows: Sequence[Row], unit: str) -> tuple[float, str]:
    """Return the divisor of the numbers of all rows, and the scaled unit.

    Only money is scaled, and moderately, so that small components of a cost keep their digits.
    """
    largest = max((abs(row[name] or 0.0) for row in rows for name in ("a", "b")), default=0.0)
    if unit != "$" or largest < 1e5:
        return 1.0, unit
    return (1e3, "thousand $") if largest < 1e7 else (1e6, "million $")


def decimals_of(rows: Sequence[Row], divisor: float) -> int:
    """Return the number of decimals of all rows: enough for four significant digits of the largest number."""
    largest = max((abs(row[name] or 0.0) / divisor for row in rows for name in ("a", "b")), default=0.0)
    return 0 if largest >= 10_000 else 1 if largest >= 1_000 else 2 if largest >= 10 else 3


def fixed_point(value: float | None, divisor: float, decimals: int, *, has_sign: bool = False) -> str:
    """Format a number with fixed decimals, and with a sign if `has_sign`; a dash for None."""
    if value is None:
        return NO_VALUE
    text = f"{value / divisor:{'+' if has_sign else ''},.{decimals}f}"
    return text.lstrip("+-") if not any(digit in "123456789" for digit in text) else text.replace("-", "\N{MINUS SIGN}")


def spread(row: Row, divisor: float, decimals: int) -> str:
    """Format the half width of the confidence interval."""
    return "" if row["half_width"] is None else f"± {fixed_point(row['half_width'], divisor, decimals)}"


def relative_change(row: Row) -> str:
    """Format the change in percent of A; empty if A is zero."""
    if row["difference"] is None or abs(row["a"] or 0.0) <= NEGLIGIBLE:
        return ""
    if row["difference"] == 0:
        return "0 %"
    change = row["difference"] / abs(row["a"])
    if abs(change) > MAX_SHARE:
        return f"> {100 * MAX_SHARE:,.0f} %"
    if abs(change) < MIN_SHARE:
        return f"< {100 * MIN_SHARE:g} %"
    return f"{100 * change:+.{1 if abs(change) >= 0.1 else 2}f} %".replace("-", "\N{MINUS SIGN}")


def largest_changes(comparison: StudyComparison, quantity: str, count: int) -> list[Row]:
    """Return at most `count` entities with a significant change above `ABOUT_EQUAL`, the largest first."""
    rows = [row for row in comparison.entities.to_pylist() if row["quantity"] == quantity]
    changed = [row for row in rows if row["difference"] is not None and _is_noticeable(row)]
    return sorted(changed, key=lambda row: -abs(row["difference"]))[:count]


def _is_noticeable(row: Row) -> bool:
    size = max(abs(row["a"]), abs(row["b"]))
    return is_certain(row["difference"], row["half_width"] or 0.0) and abs(row["difference"]) > ABOUT_EQUAL * size


def cost_sentence(comparison: StudyComparison) -> str:
    """Describe the change of the cost in a sentence."""
    row = comparison.summary.slice(0, 1).to_pylist()[0]
    if row["difference"] == 0:
        return "B costs as much as A in every scenario"
    word = "less" if row["difference"] < 0 else "more"
    divisor, unit = scale_for(abs(row["difference"]), "$")
    amount = digits(abs(row["difference"]) / divisor)
    decimals = len(amount.partition(".")[2])
    interval = "" if row["half_width"] is None else f" ± {row['half_width'] / divisor:,.{decimals}f}"
    sentence = f"B costs {amount}{interval} {unit} {word} than A ({relative_change(row)})"
    if row["half_width"] is not None and not is_certain(row["difference"], row["half_width"]):
        return f"{sentence}: within the sampling error"
    return sentence


def scope_sentence(comparison: StudyComparison) -> str:
    """Describe the scenarios and stages over which the means are taken."""
    money = comparison.money
    if money is None:
        return ""
    inflows = {
        True: ", with the same inflows in both studies",
        False: ", whose inflows differ between the studies",
        None: "",
    }[money.has_same_inflows]
    scenarios = f"{money.scenarios:,} common scenario{'s' if money.scenarios > 1 else ''}"
    span = f"{len(money.stages)} stages from {money.stages[0].name} to {money.stages[-1].name}"
    return f"Means over {scenarios}{inflows}; {span}; money in $ of the first stage"


def unmatched_lines(comparison: StudyComparison) -> list[str]:
    """Return a line for each entity that only one study has, with its quantities."""
    rows = comparison.entities.to_pylist()
    lines = []
    for side in "AB":
        for kind, id_, name in comparison.only_in(side):
            listed = [
                f"{row['title'].lower()} {digits(row[side.lower()])} {row['unit']}"
                for row in rows
                if row["entity_kind"] == kind and row["entity_id"] == id_ and row["present_in"] == side
            ]
            lines.append(
                f"Only in {side}: {name} ({_kind_in_words(kind)} {id_})" + (f": {', '.join(listed)}" if listed else "")
            )
    return lines


def _kind_in_words(kind: str) -> str:
    names = {"hydros": "hydro plant", "thermals": "thermal plant"}
    return names.get(kind, singular(kind).replace("_", " "))


BY_STAGE = (COST, "marginal_cost", "storage", "thermal_generation", "deficit")

BY_ENTITY = (
    "marginal_cost",
    "hydro_generation",
    "thermal_generation",
    "deficit",
    "exchange",
    "storage",
    "spillage",
    "water_value",
)

MAX_CHANGES = 5


def comparison_text(comparison: StudyComparison) -> str:
    """Render the comparison as text: bits, then means in total, by stage and by entity."""
    parts = [] if comparison.bits is None else ["\n".join(bits_lines(comparison.bits))]
    if comparison.money is not None and not comparison.is_identical:
        parts += ["\n".join(_headline(comparison)), _summary(comparison), _stages(comparison)]
        parts += [text for text in (_entities(comparison),) if text]
    parts += ["\n".join(f"note: {note}" for note in comparison.notes)] if comparison.notes else []
    return "\n\n".join(parts)


def bits_lines(bits: Comparison) -> Iterator[str]:
    """Yield "identical" or the first difference, then digests and notes."""
    if bits.is_identical:
        yield "identical"
        yield f"digest {bits.digests[0]} of bounds, cuts, policy file and simulation"
        return
    yield f"first difference in {bits.difference}"
    yield from (f"digest {digest} of {name}" for digest, name in zip(bits.digests, "AB", strict=True))
    yield from (f"note: {note}" for note in bits.notes)


def one_line(comparison: StudyComparison) -> str:
    """Render the comparison in a single line."""
    if comparison.is_identical:
        return "identical"
    return cost_sentence(comparison) if comparison.money is not None else "; ".join(comparison.notes)


def _headline(comparison: StudyComparison) -> Iterator[str]:
    yield from (f"{name}  {path}" for name, path in zip("AB", comparison.names, strict=True) if name != path)
    yield scope_sentence(comparison)
    yield cost_sentence(comparison)
    yield from unmatched_lines(comparison)


def _summary(comparison: StudyComparison) -> str:
    rows = comparison.summary.to_pylist()
    cells = [["", "", "A", "B", "B - A", "± 95 %", "change"]]
    cost = [row for row in rows if row["quantity"] == COST]
    for row in rows:
        alike = cost if row["quantity"] == COST else [row]
        cells.append(_line(row, alike, f"  {row['component']}" if row["component"] else row["title"]))
    return align_columns(cells, left=2)


def _line(row: Row, alike: Sequence[Row], title: str) -> list[str]:
    divisor, unit = scale_of(alike, row["unit"])
    decimals = decimals_of(alike, divisor)
    numbers = [fixed_point(row[name], divisor, decimals) for name in ("a", "b")]
    difference = fixed_point(row["difference"], divisor, decimals, has_sign=True)
    return [title, unit, *numbers, difference, spread(row, divisor, decimals), relative_change(row)]


def _stages(comparison: StudyComparison) -> str:
    """Return B - A by stage, of the quantities `BY_STAGE`."""
    rows = comparison.stages.to_pylist()
    columns = [[row for row in rows if row["quantity"] == key] for key in BY_STAGE]
    columns = [column for column in columns if column and any(row["difference"] for row in column)]
    if not columns:
        return "No difference in any stage"
    labels = ["B - A by stage", "", *(row["stage"] for row in columns[0])]
    cells = [[label] for label in labels]
    for column in columns:
        divisor, unit = scale_of(
            [{"a": row["difference"], "b": row["half_width"]} for row in column], column[0]["unit"]
        )
        decimals = decimals_of([{"a": row["difference"], "b": 0.0} for row in column], divisor)
        numbers = (fixed_point(row["difference"], divisor, decimals, has_sign=True) for row in column)
        spreads = (spread(row, divisor, decimals) for row in column)
        differences = [f"{number} {half_width}".rstrip() for number, half_width in zip(numbers, spreads, strict=True)]
        for line, cell in zip(cells, [_short_title(column[0]["title"]), unit, *differences], strict=True):
            line.append(cell)
    return align_columns(cells, left=1)


def _short_title(title: str) -> str:
    return {"Marginal cost of energy": "Marginal cost"}.get(title, title)


def _entities(comparison: StudyComparison) -> str:
    cells = [["Largest significant changes", "", "A", "B", "B - A", "± 95 %", "change"]]
    for key in BY_ENTITY:
        rows = largest_changes(comparison, key, MAX_CHANGES)
        if rows:
            cells.append([rows[0]["title"]])
            cells += [_line(row, rows, f"  {row['entity']}") for row in rows]
    return align_columns(cells, left=2) if len(cells) > 1 else ""


def align_columns(cells: Sequence[Sequence[str]], left: int) -> str:
    """Return lines of text in columns: the first `left` columns left-aligned, the others right; one cell is a title."""
    count = max(len(line) for line in cells)
    rows = [line for line in cells if len(line) == count]
    widths = [max(len(line[column]) for line in rows) for column in range(count)]

    def shown(line: Sequence[str]) -> str:
        if len(line) < count:
            return "  ".join(line)
        padded = [
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join(shown(line) for line in cells)
