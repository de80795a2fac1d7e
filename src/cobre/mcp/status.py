"""How a study stands, for a program that asks."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.errors import CobreError
from cobre.io.storage.stored_json import read_stored_object
from cobre.mcp.jobs import Job, Jobs, log_tail
from cobre.runs.event_follower import EventFollower
from cobre.runs.events import Event
from cobre.runs.files import SUMMARY_FILE
from cobre.runs.trained_case import changed_case
from cobre.runs.view import RunView, view_of

RECENT = 5
_BOUNDS = (
    "iteration",
    "lower_bound",
    "upper_bound",
    "half_width",
    "gap",
    "policy_cost",
    "policy_cost_half_width",
    "policy_gap",
    "cuts",
    "elapsed_s",
)


class NoResultError(CobreError):
    """A run that has no result, and why."""


def study_status(output: Path, jobs: Jobs) -> dict[str, Any]:
    """State, phase, the last bounds, warnings, and what went wrong.

    state: starting, running, finished, stopped (by a signal or a limit; it can be resumed), failed, or killed.
    """
    follower = EventFollower(output)
    view = view_of(follower.read_new())
    if (job := jobs.job(output)) is not None and view.began < job.began:
        return _without_events(output, job)
    follower.check()
    return {
        "job": str(output),
        "state": view.state(output).value,
        "phase": view.phase,
        "case": view.started.get("case"),
        "backend": view.started.get("backend"),
        "workers": view.started.get("ranks"),
        "iteration_limit": view.iteration_limit,
        "last_iteration": _bounds(view.last),
        "verdict": None if (judged := view.verdict) is None else judged.sentence,
        "recent_lower_bounds": view.series("lower_bound")[-RECENT:],
        "seconds": view.seconds(time.time()),
        "seconds_left": view.seconds_left,
        "preparation": view.preparation_in_words or None,
        "progress": _progress(view),
        "warnings": view.warnings,
        "error": (view.failed or {}).get("error"),
        "error_details": _details(view.failed),
    }


def _progress(view: RunView) -> dict[str, Any] | None:
    """How far the present iteration is; None between iterations, and in the first second of one."""
    if view.progress is None:
        return None
    return {name: value for name, value in view.progress.items() if name not in ("event", "time")}


def study_result(output: Path, jobs: Jobs) -> dict[str, Any]:
    """The summary of a run that has ended."""
    try:
        content = read_stored_object(output / SUMMARY_FILE)
    except FileNotFoundError:
        status = study_status(output, jobs)
        error = f": {status['error']}" if status.get("error") else ""
        raise NoResultError(f"the study in {output} has no result: it is {status['state']}{error}") from None
    except (OSError, ValueError) as error:
        raise NoResultError(f"{output / SUMMARY_FILE} cannot be read: {error}") from error
    changed = changed_case(output)
    return {"job": str(output), **content, **({} if changed is None else {"note": changed})}


def _without_events(output: Path, job: Job) -> dict[str, Any]:
    """A process that ended before its first event says why in its log only."""
    if job.exit_code is None:
        return {"job": str(output), "state": "starting"}
    error = log_tail(output) or f"it ended with exit code {job.exit_code}"
    failed = _printed_error(error)
    return {
        "job": str(output),
        "state": "failed",
        "error": failed.get("error") or error,
        "error_details": _details(failed or None),
    }


def _printed_error(log: str) -> dict[str, Any]:
    """The error that `--json` printed in the last line; empty if there is none."""
    try:
        found = json.loads(log.rsplit("\n", 1)[-1])
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "exit_code" in found else {}


def _details(failed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Kind, remedy and facts of an error, from the event of a failed run or from what it printed."""
    if failed is None:
        return None
    return {name: value for name, value in failed.items() if name not in ("event", "time", "error", "exit_code")}


def _bounds(last: Event | None) -> dict[str, Any] | None:
    return None if last is None else {name: last.get(name) for name in _BOUNDS}
