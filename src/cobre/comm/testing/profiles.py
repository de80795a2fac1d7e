"""What the kit must know about a backend: its variants, and how its worlds are started.

To check a backend of your own, write a `Profile` for it; the rest of the kit relies on nothing else.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cobre.comm import launch
from cobre.comm.types import BackendKind


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
        """Every rank's return value, by rank; raises if a rank fails, or after `timeout_s` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a backend, chosen by environment variables.

    excluded_cases: patterns of cases that do not apply, such as mismatched calls on unchecked MPI.
    ends_job: patterns of cases in which a failure ends all processes instead of raising on every rank.
    """

    name: str = ""
    environment: Mapping[str, str] | None = None
    excluded_cases: Sequence[str] = ()
    ends_job: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RankOptions:
    """One rank of a world whose ranks are started one by one, for fault plans: the launcher would stop the others.

    world: a name that is unique to the world. Timeouts are in seconds.
    """

    world: str
    rank: int
    size: int
    timeout_s: float = 60.0
    connect_timeout_s: float = 20.0
    operation_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A backend under test.

    start: starts a whole world, as users do.
    rank_environment: the variables by which a single process joins a world, for fault plans; None: no fault plans.
    max_size: the largest number of ranks; None: no limit.
    """

    name: str
    start: Starter
    variants: Sequence[Variant] = (Variant(),)
    rank_environment: Callable[[RankOptions], dict[str, str]] | None = None
    max_size: int | None = None

    def sizes(self, wanted: Sequence[int]) -> list[int]:
        """Those of the wanted sizes that this backend supports, or its largest if it supports none of them."""
        if self.max_size is None:
            return list(wanted)
        return [size for size in wanted if size <= self.max_size] or [self.max_size]


def launched(backend: str) -> Starter:
    """Return a `Starter` that uses `cobre.comm.launch`."""

    def start(
        function: Callable[..., Any],
        size: int,
        args: Sequence[Any],
        *,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> list[Any]:
        # Output is discarded: worlds are broken on purpose, and errors quote the last lines of stderr.
        return launch.run(
            function, size, backend, args, environment=environment, timeout_s=timeout_s, output=launch.discard
        )

    return start


def profile(backend: str) -> Profile:
    """Return the profile of a backend by name; a registered one is started by the launcher, as its `new_world` says."""
    if backend == LOCAL.name:
        return LOCAL
    if backend not in list(BackendKind):
        return Profile(backend, launched(backend))
    found: Profile = importlib.import_module(f"cobre.comm.testing.{backend}").PROFILE  # a module of its name
    return found


LOCAL = Profile("local", launched("local"), max_size=1)
