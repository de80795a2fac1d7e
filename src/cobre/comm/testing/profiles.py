"""What the kit must know about a backend: its variants, and how worlds of it are started.

A backend of your own joins the kit with a `Profile` of its own; everything else is written against that.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cobre.comm import launch


class Starter(Protocol):
    """Starts a world and runs `function(comm, *args)` on every rank, as users of the backend do."""

    def __call__(
        self,
        function: Callable[..., Any],
        size: int,
        args: Sequence[Any],
        *,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> list[Any]:
        """Every rank's value; raises when a rank fails or the time is over."""
        ...


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a backend, chosen by environment variables.

    leaves_out: patterns of cases about what this way does not promise, such as mismatched calls on plain MPI.
    ends_job: patterns of cases in which ranks are not told of a failure, but all of them are ended; one rank is told.
    """

    name: str = ""
    environment: Mapping[str, str] | None = None
    leaves_out: Sequence[str] = ()
    ends_job: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Seat:
    """A place in a world of ranks that are started one by one; for faults, where the launcher would tidy up."""

    world: str
    rank: int
    size: int
    timeout_s: float = 60.0
    connect_timeout_s: float = 20.0
    operation_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A backend as the kit sees it.

    start: starts a whole world, as users do.
    seat: the variables by which a process takes a seat in a world; None: it has no world of several processes.
    max_size: the largest world; None: no limit that matters here.
    """

    name: str
    start: Starter
    variants: Sequence[Variant] = (Variant(),)
    seat: Callable[[Seat], dict[str, str]] | None = None
    max_size: int | None = None

    def sizes(self, wanted: Sequence[int]) -> list[int]:
        """Those of the wanted sizes that this backend can have; its largest where none is left."""
        if self.max_size is None:
            return list(wanted)
        return [size for size in wanted if size <= self.max_size] or [self.max_size]


def launched(backend: str) -> Starter:
    """Start worlds with `cobre.comm.launch`."""

    def start(
        function: Callable[..., Any],
        size: int,
        args: Sequence[Any],
        *,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> list[Any]:
        # What ranks print is noise here: broken worlds are wanted, and errors quote the last lines.
        return launch.run(function, size, backend, args, environment=environment, timeout_s=timeout_s, output=_discard)

    return start


def _discard(_rank: int, _stream: str, _text: str) -> None:
    """Print nothing."""


def profile(backend: str) -> Profile:
    """The profile of one of our own backends."""
    if backend == LOCAL.name:
        return LOCAL
    found: Profile = importlib.import_module(f"cobre.comm.testing.{backend}").PROFILE  # a module of its name
    return found


LOCAL = Profile("local", launched("local"), max_size=1)
