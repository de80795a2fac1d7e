"""Formatting of numbers and events for people: for columns of a terminal, or in sentences (`_in_words`).

Also the labels of result columns, and the thresholds below which a number is not worth showing.
"""

import math
from collections.abc import Mapping
from typing import Any

from cobre.wording import printable

NO_VALUE = "\N{EN DASH}"
_STEPS = ((1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
_UNITS = ((1e9, "G$"), (1e6, "M$"), (1e3, "k$"))
_BARS = "▁▂▃▄▅▆▇█"
PHASE_COLOURS = {"forward": "cyan", "backward": "blue", "bound": "magenta", "exchange": "yellow"}
NOT_A_BOUND = "sampled, not a bound under a risk measure"
CONTROLLED = "controlled for the openings drawn"
"""Of a simulated mean: the effect of the random draw of openings is removed."""


def printable_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event with control characters escaped: texts may quote a case or an altered log."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def short_money(value: float | None) -> str:
    """Format an amount in about six characters, with the unit."""
    if value is None:
        return "-"
    factor, unit = next((entry for entry in _UNITS if abs(value) >= entry[0]), (1.0, "$"))
    return f"{value / factor:,.2f} {unit}"


def duration(seconds: float | None) -> str:
    """Format seconds as 12.3 s, 4:05 or 1:02:03."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def rough_duration(seconds: float) -> str:
    """Format an estimated duration: about three digits, in the unit that a person would choose."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


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


def scale_for(largest: float, unit: str) -> tuple[float, str]:
    """Return the divisor for numbers up to `largest`, and the scaled unit."""
    if unit == "MW" and abs(largest) >= 1e4:
        return 1e3, "GW"
    for divisor, word in _STEPS:
        if abs(largest) >= divisor * (1 if divisor > 1e3 else 10):
            return divisor, f"{word} {unit}"
    return 1.0, unit


def money_in_words(amount: float) -> str:
    """Format $ with four digits: `1.235 million $`."""
    if not math.isfinite(amount):
        return "unknown"
    divisor, unit = scale_for(amount, "$")
    return f"{digits(amount / divisor)} {unit}"


def digits(number: float, significant: int = 4) -> str:
    """Format a number with thousands separators and its significant digits."""
    if not math.isfinite(number):
        return NO_VALUE
    if number == 0:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{places}f}"


def percent_in_words(share: float) -> str:
    """Format a share of 1 with three digits: `12.3 %`, and `< 0.01 %` for a tiny one."""
    if not math.isfinite(share):
        return NO_VALUE
    return "< 0.01 %" if 0 < abs(share) < 1e-4 else f"{digits(100 * share, 3)} %"


def duration_in_words(seconds: float) -> str:
    """Format seconds as `12.3 s`, `4 min 05 s` or `1 h 02 min`."""
    if not math.isfinite(seconds):
        return NO_VALUE
    if seconds < 60:
        return f"{digits(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


# Labels of the columns of result tables: units by the ending of a name, titles of the parts of the cost.


# By ending; longer endings come before those that they contain.
_COLUMN_UNITS: Mapping[str, str] = {
    "_mw_per_m3s": "MW/(m3/s)",
    "_per_hm3": "$/hm3",
    "_per_mwh": "$/MWh",
    "_per_mw": "$/MW",
    "_m3s": "m3/s",
    "_hm3": "hm3",
    "_mwh": "MWh",
    "_mw": "MW",
    "_cost": "$",
    "_reward": "$",
    "_bound": "$",
    "_bound_std": "$",
    "_price": "$/MWh",
    "_percent": "%",
    "_ms": "ms",
}

KINDS_BY_ID: Mapping[str, str] = {
    "hydro_id": "hydros",
    "thermal_id": "thermals",
    "bus_id": "buses",
    "line_id": "lines",
    "non_controllable_id": "non_controllables",
    "contract_id": "contracts",
    "pumping_station_id": "pumping_stations",
}
"""Kinds of entities by the columns of results that have their ids."""

COST_COMPONENTS: Mapping[str, str] = {
    "thermal_cost": "Thermal generation",
    "anticipated_thermal_cost": "Thermal generation committed ahead",
    "contract_cost": "Contracts",
    "deficit_cost": "Deficit",
    "excess_cost": "Excess power",
    "storage_violation_cost": "Storage below its minimum",
    "filling_target_cost": "Missed filling targets",
    "outflow_violation_below_cost": "Outflow below its minimum",
    "outflow_violation_above_cost": "Outflow above its maximum",
    "turbined_violation_cost": "Turbined flow below its minimum",
    "generation_violation_cost": "Hydro generation below its minimum",
    "evaporation_violation_cost": "Evaporation not met",
    "withdrawal_violation_cost": "Water withdrawals not met",
    "inflow_penalty_cost": "Negative inflows",
    "spillage_cost": "Spillage",
    "diversion_cost": "Diversion",
    "turbined_cost": "Turbined flow",
    "exchange_cost": "Exchange between buses",
    "generic_violation_cost": "Generic constraints violated",
    "non_controllable_reward": "Reward for available sources",
    "curtailment_cost": "Curtailment",
}
"""Columns of the table of costs that add up to the cost of a stage."""


def unit_of_column(column: str) -> str:
    """Return the unit of a column by its ending, such as MW for `_mw`; empty where it has none."""
    return next((unit for ending, unit in _COLUMN_UNITS.items() if column.endswith(ending)), "")


# Thresholds of reports, tables and notes. LPs are solved to a tolerance, so tiny values are noise.

NEGLIGIBLE = 1e-6  # MWh, MW, hm3, m3/s or $: a deficit, violation or cost up to this counts as zero
NOTABLE_PENALTY_SHARE = 0.5  # of the cost: penalties of this share or more get a note
MIN_COST = 0.01  # $: smaller costs are left out of tables of costs
