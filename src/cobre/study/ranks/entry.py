"""Where a rank begins. Whoever starts ranks names a function of this module; only the ranks load what it needs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cobre.comm import Backend
    from cobre.runs.events import EventListener
    from cobre.runs.summary import RunSummary
    from cobre.sddp.problem.problem import PreparedStudy
    from cobre.study.requests import RunRequest


def run_study(
    comm: "Backend",
    request: "RunRequest",
    emit: "EventListener",
    on_ready: "Callable[[PreparedStudy], None]" = lambda _: None,
) -> "RunSummary":
    """A whole run, as `cobre.study.run` does it."""
    from cobre.study.run import run_study as run

    return run(comm, request, emit, on_ready)
