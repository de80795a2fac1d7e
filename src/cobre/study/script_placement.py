"""Where a script runs its studies: in one process unless it asks for more."""

from typing import Any

from cobre.study.arguments import as_python_int
from cobre.study.placement import Placement, choose_placement


def script_placement(backend: str, num_workers: int | None) -> Placement:
    """As asked for; without a number of workers one, unless this process was started as a rank."""
    wanted: Any = as_python_int(num_workers)  # what is no number is refused there
    placement = choose_placement(backend, wanted)
    return placement if placement.is_joined or num_workers is not None else choose_placement(backend, 1)
