"""A comparison as text for the terminal."""

from collections.abc import Iterator, Sequence

from cobre.comparison.numbers import (
    Row,
    basis,
    cost_sentence,
    decimals_of,
    fixed,
    largest_changes,
    only_lines,
    scale_of,
    share,
    spread,
)
from cobre.comparison.quantities import COST
from cobre.comparison.result import StudyComparison
from cobre.runs.bit_comparison import Comparison

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


def described(comparison: StudyComparison) -> str:
    """The comparison as text: bits, then means in total, by stage and by entity."""
    parts = [] if comparison.bits is None else ["\n".join(bits_lines(comparison.bits))]
    if comparison.money is not None and not comparison.is_identical:
        parts += ["\n".join(_headline(comparison)), _summary(comparison), _stages(comparison)]
        parts += [text for text in (_entities(comparison),) if text]
    parts += ["\n".join(f"note: {note}" for note in comparison.notes)] if comparison.notes else []
    return "\n\n".join(parts)


def bits_lines(bits: Comparison) -> Iterator[str]:
    """Identical, or the first difference."""
    if bits.is_identical:
        yield "identical"
        yield f"digest {bits.digests[0]} of bounds, cuts, policy file and simulation"
        return
    yield f"first difference in {bits.difference}"
    yield from (f"digest {digest} of {name}" for digest, name in zip(bits.digests, "AB", strict=True))
    yield from (f"note: {note}" for note in bits.notes)


def in_a_line(comparison: StudyComparison) -> str:
    """The comparison in a single line."""
    if comparison.is_identical:
        return "identical"
    return cost_sentence(comparison) if comparison.money is not None else "; ".join(comparison.notes)


def _headline(comparison: StudyComparison) -> Iterator[str]:
    yield from (f"{name}  {path}" for name, path in zip("AB", comparison.names, strict=True) if name != path)
    yield basis(comparison)
    yield cost_sentence(comparison)
    yield from only_lines(comparison)


def _summary(comparison: StudyComparison) -> str:
    rows = comparison.summary.to_pylist()
    cells = [["", "", "A", "B", "B - A", "± 95 %", "change"]]
    cost = [row for row in rows if row["quantity"] == COST]
    for row in rows:
        alike = cost if row["quantity"] == COST else [row]
        cells.append(_line(row, alike, f"  {row['component']}" if row["component"] else row["title"]))
    return aligned(cells, left=2)


def _line(row: Row, alike: Sequence[Row], title: str) -> list[str]:
    divisor, unit = scale_of(alike, row["unit"])
    decimals = decimals_of(alike, divisor)
    numbers = [fixed(row[name], divisor, decimals) for name in ("a", "b")]
    difference = fixed(row["difference"], divisor, decimals, has_sign=True)
    return [title, unit, *numbers, difference, spread(row, divisor, decimals), share(row)]


def _stages(comparison: StudyComparison) -> str:
    """B - A by stage, of the quantities `BY_STAGE`."""
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
        shown = [
            f"{fixed(row['difference'], divisor, decimals, has_sign=True)} {spread(row, divisor, decimals)}".rstrip()
            for row in column
        ]
        for line, cell in zip(cells, [_short(column[0]["title"]), unit, *shown], strict=True):
            line.append(cell)
    return aligned(cells, left=1)


def _short(title: str) -> str:
    return {"Marginal cost of energy": "Marginal cost"}.get(title, title)


def _entities(comparison: StudyComparison) -> str:
    cells = [["Largest significant changes", "", "A", "B", "B - A", "± 95 %", "change"]]
    for key in BY_ENTITY:
        rows = largest_changes(comparison, key, MAX_CHANGES)
        if rows:
            cells.append([rows[0]["title"]])
            cells += [_line(row, rows, f"  {row['entity']}") for row in rows]
    return aligned(cells, left=2) if len(cells) > 1 else ""


def aligned(cells: Sequence[Sequence[str]], left: int) -> str:
    """Lines of text in columns: the first `left` columns left-aligned, the others right; one cell is a title."""
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
