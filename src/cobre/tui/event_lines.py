"""Events as lines of a log for people."""

import time

from cobre.printable import printable
from cobre.runs.events import Event
from cobre.runs.formatting import duration, short_money
from cobre.wording import money, percent


def event_line(event: Event) -> str:
    """An event as one line with the time of day; empty for kinds that are not shown."""
    text = printable(_text(event), lines=False)
    return f"{time.strftime('%H:%M:%S', time.localtime(event.get('time', 0.0)))}  {text}" if text else ""


def _text(event: Event) -> str:  # noqa: PLR0911 - one answer for each kind
    match event["event"]:
        case "run_started":
            return _start(event)
        case "phase" | "preparation":
            return _step(event)
        case "warning":
            return f"warning: {event.get('message')}"
        case "iteration":
            return _iteration(event)
        case "checkpoint" | "resumed":
            return _saved(event)
        case "training_finished":
            return f"training ended: {event.get('stop_reason')}; digest {str(event.get('digest'))[:16]}"
        case "simulation_finished":
            return f"simulated {event.get('scenarios')} scenarios: mean {money(event.get('mean_cost'))} $"
        case "run_finished":
            return f"ended after {duration(event.get('seconds'))}"
        case "run_failed":
            return f"failed: {event.get('error')}"
        case _:
            return ""


def _saved(event: Event) -> str:
    """A checkpoint that was written, or that training goes on from."""
    if event["event"] == "resumed":
        return f"resumed after iteration {event.get('iteration')}"
    return f"checkpoint of iteration {event.get('iteration')} in {duration(event.get('seconds'))}"


def _step(event: Event) -> str:
    """A phase of the run, or a step of its preparation with how far it is."""
    if event["event"] == "phase":
        return f"{event.get('name')} ..."
    parts = f", {event.get('done')} of {event.get('total')}" if event.get("total") else ""
    return f"{event.get('step')}{parts}"


def _start(event: Event) -> str:
    again = " (resumed)" if event.get("is_resumed") else ""
    ranks = f"{event.get('ranks')} rank{'s' * (event.get('ranks') != 1)} on {event.get('backend')}"
    return f"cobre {event.get('version')} on {event.get('host')}, {ranks}{again}"


def _iteration(event: Event) -> str:
    """Short enough for half of a terminal of 80 columns; the upper bound is what the gap says."""
    gap = event.get("gap") if event.get("policy_gap") is None else event.get("policy_gap")
    return f"{event.get('iteration'):>3}  {short_money(event.get('lower_bound'))}, gap {percent(gap)}"
