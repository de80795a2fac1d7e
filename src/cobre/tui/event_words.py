"""Events as lines of a log for people."""

import time

from cobre.printable import printable
from cobre.runs.events import Event
from cobre.runs.formatting import duration, money, percent, short_money


def in_words(told: Event) -> str:
    """One line, with the time of day; empty for what is no news."""
    text = printable(_text(told), lines=False)
    return f"{time.strftime('%H:%M:%S', time.localtime(told.get('time', 0.0)))}  {text}" if text else ""


def _text(told: Event) -> str:  # noqa: PLR0911 - one answer for each kind
    match told["event"]:
        case "run_started":
            return _start(told)
        case "phase":
            return f"{told.get('name')} ..."
        case "warning":
            return f"warning: {told.get('message')}"
        case "iteration":
            return _iteration(told)
        case "checkpoint":
            return f"checkpoint of iteration {told.get('iteration')} in {duration(told.get('seconds'))}"
        case "training_finished":
            return f"trained: {told.get('stop_reason')}; digest {str(told.get('digest'))[:16]}"
        case "simulation_finished":
            return f"simulated {told.get('scenarios')} scenarios: mean {money(told.get('mean_cost'))} $"
        case "run_finished":
            return f"finished after {duration(told.get('seconds'))}"
        case "run_failed":
            return f"failed: {told.get('error')}"
        case _:
            return ""


def _start(told: Event) -> str:
    again = " (resumed)" if told.get("is_resumed") else ""
    ranks = f"{told.get('ranks')} rank{'s' * (told.get('ranks') != 1)} by {told.get('backend')}"
    return f"cobre {told.get('version')} on {told.get('host')}, {ranks}{again}"


def _iteration(told: Event) -> str:
    """Short enough for half of a terminal of 80 columns; the upper bound is what the gap says."""
    return f"{told.get('iteration'):>3}  {short_money(told.get('lower_bound'))}, gap {percent(told.get('gap'))}"
