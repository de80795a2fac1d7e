"""Human-readable text: phrases, formatted numbers, bars, and the escaping of untrusted text. Light to import.

Numbers: `_compact` is for the columns of a terminal, `_spelled` for sentences and reports.
"""

import math
import shlex
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NO_VALUE = "\N{EN DASH}"
_STEPS = ((1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
_UNITS = ((1e9, "G$"), (1e6, "M$"), (1e3, "k$"))
_BARS = "▁▂▃▄▅▆▇█"


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


def money(value: float | None, decimals: int = 2) -> str:
    """Format an amount in $ with thousands separators, without the sign; `-` for None.

    >>> money(1234567.891), money(None)
    ('1,234,567.89', '-')
    """
    return "-" if value is None else f"{value:,.{decimals}f}"


def money_compact(value: float | None) -> str:
    """Format an amount in about six characters, with the unit."""
    if value is None:
        return "-"
    factor, unit = next((entry for entry in _UNITS if abs(value) >= entry[0]), (1.0, "$"))
    return f"{value / factor:,.2f} {unit}"


def money_spelled(amount: float) -> str:
    """Format $ with four digits: `1.235 million $`."""
    if not math.isfinite(amount):
        return "unknown"
    divisor, unit = scale_for(amount, "$")
    return f"{digits(amount / divisor)} {unit}"


def scale_for(largest: float, unit: str) -> tuple[float, str]:
    """Return the divisor for numbers up to `largest`, and the scaled unit."""
    if unit == "MW" and abs(largest) >= 1e4:
        return 1e3, "GW"
    for divisor, word in _STEPS:
        if abs(largest) >= divisor * (1 if divisor > 1e3 else 10):
            return divisor, f"{word} {unit}"
    return 1.0, unit


def digits(number: float, significant: int = 4) -> str:
    """Format a number with thousands separators and its significant digits."""
    if not math.isfinite(number):
        return NO_VALUE
    if number == 0:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{places}f}"


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


def percent_spelled(share: float) -> str:
    """Format a share of 1 with three digits: `12.3 %`, and `< 0.01 %` for a tiny one."""
    if not math.isfinite(share):
        return NO_VALUE
    return "< 0.01 %" if 0 < abs(share) < 1e-4 else f"{digits(100 * share, 3)} %"


def duration_compact(seconds: float | None) -> str:
    """Format seconds as 12.3 s, 4:05 or 1:02:03."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def duration_rounded(seconds: float) -> str:
    """Format an estimated duration: about three digits, in the unit that a person would choose."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def duration_spelled(seconds: float) -> str:
    """Format seconds as `12.3 s`, `4 min 05 s` or `1 h 02 min`."""
    if not math.isfinite(seconds):
        return NO_VALUE
    if seconds < 60:
        return f"{digits(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def size(count: int) -> str:
    """Format a number of bytes, in GB or MB."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def rate(per_s: float | None, unit: str) -> str:
    """Format a rate per second, or per minute where that is slow."""
    if per_s is None:
        return "-"
    if per_s < 0.2:
        return f"{60 * per_s:.2g} {unit}/min"
    return f"{per_s:,.1f} {unit}/s" if per_s < 100 else f"{per_s:,.0f} {unit}/s"


# Bars and lines of block characters.


def sparkline(values: list[float | None], width: int) -> str:
    """Draw the last `width` values as bars up to the highest of them.

    The lowest fifth shares the lowest bar: first bounds are so far off that all others would look the same.
    """
    shown = [value for value in values[-max(1, width) :] if value is not None]
    if not shown:
        return ""
    low, high = sorted(shown)[len(shown) // 5], max(shown)
    return "".join(vertical_bar((value - low) / ((high - low) or 1.0)) for value in shown)


def vertical_bar(share: float) -> str:
    """Return the block character as high as `share` (0 to 1)."""
    return _BARS[min(len(_BARS) - 1, int(max(0.0, share) * len(_BARS)))]


def bar(share: float, width: int) -> str:
    """Draw a bar of block characters, `width` long, filled up to `share` (0 to 1)."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + "░" * (width - filled)


def first_fitting(room: int, *choices: str) -> str:
    """Return the first choice of at most `room` characters, else the last one."""
    return next((choice for choice in choices if len(choice) <= room), choices[-1])


# Escaping of untrusted text for terminals; all output of such text uses it.
#
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


def printable_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event with control characters escaped: texts may quote a case or an altered log."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


# Quoting of paths in commands that users copy to a shell.


def as_argument(path: Path | str) -> str:
    """Quote a path as a shell argument where needed; it is never taken as an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
