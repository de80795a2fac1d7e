"""The world of a script, which is one process unless it asks for more."""

from typing import Any

from cobre.study.arguments import plain_number
from cobre.study.placement import World, choose_world


def script_world(backend: str, num_workers: int | None) -> World:
    """As asked for; without a number of workers one, unless a world is there already."""
    wanted: Any = plain_number(num_workers)  # what is no number is refused there
    world = choose_world(backend, wanted)
    return world if world.is_joined or num_workers is not None else choose_world(backend, 1)
