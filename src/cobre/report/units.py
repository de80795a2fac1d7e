"""Numbers as people read them."""

import math
from collections.abc import Sequence

NOTHING = "\N{EN DASH}"
_STEPS = ((1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


def scale_for(largest: float, unit: str) -> tuple[float, str]:
    """By how much to divide numbers up to `largest`, and the unit that they then have."""
    if unit == "MW" and abs(largest) >= 1e4:
        return 1e3, "GW"
    for divisor, word in _STEPS:
        if abs(largest) >= divisor * (1 if divisor > 1e3 else 10):
            return divisor, f"{word} {unit}"
    return 1.0, unit


def money(amount: float) -> str:
    """In $, with four digits."""
    if not math.isfinite(amount):
        return "unknown"
    divisor, unit = scale_for(amount, "$")
    return f"{digits(amount / divisor)} {unit}"


def digits(number: float, significant: int = 4) -> str:
    """With thousands set apart; as many digits as say something."""
    if not math.isfinite(number):
        return NOTHING
    if number == 0:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{places}f}"


def percent(share: float) -> str:
    """Of a share of 1."""
    if not math.isfinite(share):
        return NOTHING
    return "< 0.01 %" if 0 < abs(share) < 1e-4 else f"{digits(100 * share, 3)} %"


def duration(seconds: float) -> str:
    """Hours and minutes where there are any."""
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{digits(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
