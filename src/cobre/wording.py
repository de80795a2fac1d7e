"""Phrases and numbers as text, and limits of options."""

import shlex
import unicodedata
from pathlib import Path


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "iteration"), counted(1200, "iteration"), counted(2, "axis", "axes")
    ('1 iteration', '1,200 iterations', '2 axes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def singular(kind: str) -> str:
    """Return the singular of an entity kind.

    >>> singular("hydros"), singular("buses"), singular("pumping_stations")
    ('hydro', 'bus', 'pumping_station')
    """
    return "bus" if kind == "buses" else kind.removesuffix("s")


def plural(noun: str) -> str:
    """Return the plural of an entity kind; the inverse of `singular`.

    >>> plural("hydro"), plural("bus")
    ('hydros', 'buses')
    """
    return "buses" if noun == "bus" else f"{noun}s"


def money(value: float | None, digits: int = 2) -> str:
    """Format an amount in $ with thousands separators, without the sign; `-` for None.

    >>> money(1234567.891), money(None)
    ('1,234,567.89', '-')
    """
    return "-" if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Format a share of 1 in percent, with one decimal below 1,000 %; `-` for None.

    >>> percent(0.1234), percent(12.3456)
    ('12.3 %', '1,235 %')
    """
    if share is None:
        return "-"
    return f"{100 * share:.1f} %" if abs(share) < 10 else f"{100 * share:,.0f} %"


def gap_percent(share: float | None) -> str:
    """Format a gap in percent: two decimals, three below 0.1 %, none from 1,000 % on; `-` for None.

    >>> gap_percent(0.0021), gap_percent(0.00083), gap_percent(12.3456), gap_percent(-2e-16)
    ('0.21 %', '0.083 %', '1,235 %', '0.00 %')
    """
    if share is None:
        return "-"
    if abs(share) < 5e-6:  # rounding
        return "0.00 %"
    decimals = 3 if abs(share) < 1e-3 else 2 if abs(share) < 10 else 0
    return f"{100 * share:,.{decimals}f} %"


# Escaping of untrusted text for terminals; all output of such text uses it.


# Controls, invisible and bidirectional marks, halves of characters, private use: what may move a cursor, set a title,
# or make a line read as another one.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_ESCAPES = {0x7F: "\\x7f", **{code: f"\\x{code:02x}" for code in range(32) if code != 0x0A}}


def printable(text: str, *, max_length: int | None = None, lines: bool = True) -> str:
    """Escape everything in a text that a terminal would act on.

    max_length: characters beyond it are cut off. lines: whether line breaks stay.

    >>> printable("Itaipu\\x1b]0;title\\x07")
    'Itaipu\\\\x1b]0;title\\\\x07'
    """
    if max_length is not None and len(text) > max_length:
        text = text[:max_length] + "..."
    if text.isascii():
        text = text.translate(_ESCAPES)
    else:
        text = "".join(character if _is_safe(character) else _escaped(character) for character in text)
    return text if lines else text.replace("\n", "\\n")


def _is_safe(character: str) -> bool:
    return character == "\n" or unicodedata.category(character) not in _UNSAFE


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Quoting of paths in commands that users copy to a shell.


def as_argument(path: Path | str) -> str:
    """Quote a path as a shell argument where needed; it is never taken as an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


# Largest numbers that options and settings accept. Light to import: the command line needs them before NumPy.

MAX_THREADS = 1024
"""Most threads of one worker."""


MAX_COUNT = 10_000_000
"""Most iterations, forward passes or scenarios; a larger number is taken for a typing error."""
