"""Numbers and events as people read them."""

from collections.abc import Mapping
from typing import Any

from cobre.printable import printable

_UNITS = ((1e9, "G$"), (1e6, "M$"), (1e3, "k$"))
_BARS = "▁▂▃▄▅▆▇█"


def printable_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event whose texts a terminal can be given: they may quote a case, and a log may come from anybody."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def money(value: float | None, digits: int = 2) -> str:
    """With commas; a dash where there is no number, as for a bound that is infinite."""
    return "-" if value is None else f"{value:,.{digits}f}"


def short_money(value: float | None) -> str:
    """Six characters or so, with the unit."""
    if value is None:
        return "-"
    factor, unit = next((entry for entry in _UNITS if abs(value) >= entry[0]), (1.0, "$"))
    return f"{value / factor:,.2f} {unit}"


def percent(share: float | None) -> str:
    """Of 1; few digits, and not as many as the number has where it is huge."""
    if share is None:
        return "-"
    return f"{100 * share:.1f} %" if abs(share) < 10 else f"{100 * share:,.0f} %"


def duration(seconds: float | None) -> str:
    """12.3 s, 4:05 or 1:02:03."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def rate(per_s: float | None, what: str) -> str:
    """Per second, or per minute where that is slow."""
    if per_s is None:
        return "-"
    if per_s < 0.2:
        return f"{60 * per_s:.2g} {what}/min"
    return f"{per_s:,.1f} {what}/s" if per_s < 100 else f"{per_s:,.0f} {what}/s"


def sparkline(values: list[float | None], width: int) -> str:
    """The last `width` values as bars up to the highest of them.

    The lowest fifth shares the lowest bar: first bounds are so far off that all others would look the same.
    """
    shown = [value for value in values[-max(1, width) :] if value is not None]
    if not shown:
        return ""
    low, high = sorted(shown)[len(shown) // 5], max(shown)
    return "".join(_BARS[_level((value - low) / ((high - low) or 1.0))] for value in shown)


def _level(share: float) -> int:
    return min(len(_BARS) - 1, int(max(0.0, share) * len(_BARS)))


def bar(share: float, width: int) -> str:
    """A filled part and an empty one."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + "░" * (width - filled)
