"""Text from cases in CSV files, escaped: a spreadsheet must not evaluate it as a formula, nor a terminal act on it."""

from typing import TYPE_CHECKING

from cobre.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA_STARTS = ("=", "+", "-", "@")


def spreadsheet_text(text: str) -> str:
    """The text with control characters escaped, and an apostrophe before what a spreadsheet would take as a formula.

    >>> spreadsheet_text('=HYPERLINK("http://example.org")')
    '\\'=HYPERLINK("http://example.org")'
    """
    shown = printable(text, lines=False)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA_STARTS) else shown


def with_spreadsheet_text(table: "pa.Table") -> "pa.Table":
    """The table with its text columns escaped by `spreadsheet_text`."""
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            safe = [None if text is None else spreadsheet_text(text) for text in table.column(index).to_pylist()]
            table = table.set_column(index, field, pa.array(safe, field.type))
    return table
