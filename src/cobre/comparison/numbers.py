"""Formatting of the numbers of a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from cobre.comparison.paired_means import is_certain
from cobre.comparison.result import StudyComparison
from cobre.core.indicators import NEGLIGIBLE
from cobre.runs.formatting import NOTHING, digits, scale_for
from cobre.wording import singular

Row = Mapping[str, Any]
MAX_SHARE, MIN_SHARE = 10.0, 1e-4
ABOUT_EQUAL = 5e-4
"""Relative changes up to this are not listed among the largest changes."""


def scale_of(rows: Sequence[Row], unit: str) -> tuple[float, str]:
    """The divisor of the numbers of all rows, and the scaled unit.

    Only money is scaled, and moderately, so that small components of a cost keep their digits.
    """
    largest = max((abs(row[name] or 0.0) for row in rows for name in ("a", "b")), default=0.0)
    if unit != "$" or largest < 1e5:
        return 1.0, unit
    return (1e3, "thousand $") if largest < 1e7 else (1e6, "million $")


def decimals_of(rows: Sequence[Row], divisor: float) -> int:
    """The number of decimals of all rows: enough for four significant digits of the largest number."""
    largest = max((abs(row[name] or 0.0) / divisor for row in rows for name in ("a", "b")), default=0.0)
    return 0 if largest >= 10_000 else 1 if largest >= 1_000 else 2 if largest >= 10 else 3


def fixed(value: float | None, divisor: float, decimals: int, *, has_sign: bool = False) -> str:
    """A number with fixed decimals, and with a sign if `has_sign`; a dash for None."""
    if value is None:
        return NOTHING
    text = f"{value / divisor:{'+' if has_sign else ''},.{decimals}f}"
    return text.lstrip("+-") if not any(digit in "123456789" for digit in text) else text.replace("-", "\N{MINUS SIGN}")


def spread(row: Row, divisor: float, decimals: int) -> str:
    """The half width of the confidence interval."""
    return "" if row["half_width"] is None else f"± {fixed(row['half_width'], divisor, decimals)}"


def share(row: Row) -> str:
    """The change in percent of A; empty where A is zero."""
    if row["difference"] is None or abs(row["a"] or 0.0) <= NEGLIGIBLE:
        return ""
    if row["difference"] == 0:
        return "0 %"
    found = row["difference"] / abs(row["a"])
    if abs(found) > MAX_SHARE:
        return f"> {100 * MAX_SHARE:,.0f} %"
    if abs(found) < MIN_SHARE:
        return f"< {100 * MIN_SHARE:g} %"
    return f"{100 * found:+.{1 if abs(found) >= 0.1 else 2}f} %".replace("-", "\N{MINUS SIGN}")


def largest_changes(comparison: StudyComparison, quantity: str, count: int) -> list[Row]:
    """At most `count` entities with a significant change above `ABOUT_EQUAL`, the largest first."""
    rows = [row for row in comparison.entities.to_pylist() if row["quantity"] == quantity]
    changed = [row for row in rows if row["difference"] is not None and _is_noticeable(row)]
    return sorted(changed, key=lambda row: -abs(row["difference"]))[:count]


def _is_noticeable(row: Row) -> bool:
    size = max(abs(row["a"]), abs(row["b"]))
    return is_certain(row["difference"], row["half_width"] or 0.0) and abs(row["difference"]) > ABOUT_EQUAL * size


def cost_sentence(comparison: StudyComparison) -> str:
    """How the cost changed, in a sentence."""
    row = comparison.summary.slice(0, 1).to_pylist()[0]
    if row["difference"] == 0:
        return "B costs as much as A in every scenario"
    word = "less" if row["difference"] < 0 else "more"
    divisor, unit = scale_for(abs(row["difference"]), "$")
    amount = digits(abs(row["difference"]) / divisor)
    decimals = len(amount.partition(".")[2])
    doubt = "" if row["half_width"] is None else f" ± {row['half_width'] / divisor:,.{decimals}f}"
    said = f"B costs {amount}{doubt} {unit} {word} than A ({share(row)})"
    if row["half_width"] is not None and not is_certain(row["difference"], row["half_width"]):
        return f"{said}: within the sampling error"
    return said


def basis(comparison: StudyComparison) -> str:
    """A sentence on the scenarios and stages over which the means are taken."""
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


def only_lines(comparison: StudyComparison) -> list[str]:
    """A line for each entity that only one study has, with its quantities."""
    rows = comparison.entities.to_pylist()
    lines = []
    for side in "AB":
        for kind, id_, name in comparison.only_in(side):
            listed = [
                f"{row['title'].lower()} {digits(row[side.lower()])} {row['unit']}"
                for row in rows
                if row["entity_kind"] == kind and row["entity_id"] == id_ and row["present_in"] == side
            ]
            lines.append(f"Only in {side}: {name} ({_kind(kind)} {id_})" + (f": {', '.join(listed)}" if listed else ""))
    return lines


def _kind(kind: str) -> str:
    names = {"hydros": "hydro plant", "thermals": "thermal plant"}
    return names.get(kind, singular(kind).replace("_", " "))
