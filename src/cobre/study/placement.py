"""Where a study runs: in this process, as a rank of an existing world, or in workers started here."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field, replace
from pkgutil import resolve_name
from typing import Any, Self, TypeVar

from cobre.comm import (
    Backend,
    BackendConfig,
    BackendError,
    BackendNotAvailableError,
    CommError,
    InitializationFailedError,
    LocalConfig,
    launch,
    variables,
)
from cobre.comm.config import BACKEND_VARIABLE
from cobre.comm.cores import usable_cores
from cobre.comm.detection import SRUN_WITH_MPI, detect, find_launch, installed_backends, require_installed, slurm_tasks
from cobre.comm.factory import borrowed, create_communicator, registered_config, require_communicator, select_backend
from cobre.comm.types import BackendKind
from cobre.errors import CobreError
from cobre.limits import MAX_THREADS
from cobre.records import dataclass
from cobre.runs.events import Event, EventListener, encode, no_events
from cobre.study.arguments import checked_count
from cobre.study.unchecked_config import UncheckedConfig
from cobre.text import printable

Value = TypeVar("Value")
RankFunction = Callable[..., Value]
"""Called with a communicator, the arguments, and `emit`."""

THREADS_ARE_BEST = "one thread per core: as fast as processes, with less memory and a faster start"
WORKER_PER_CORE = "a worker for each core"
WORKERS_FOR_A_TREE = f"{WORKER_PER_CORE}: threads would share the leaves of a tree only"
WORKERS_OF_BACKEND = f"{WORKER_PER_CORE}, because a backend for workers was chosen"

ONE_THREAD_PER_RANK = (
    "one thread per rank, because a launcher started the ranks; where each has several cores, use --threads"
)

ONE_CORE = "this process may use one core only"

_FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PRELOAD = ("cobre.study.preload",)


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """Requested parallelism. workers, threads (per worker): None lets Cobre choose.

    backend: a name, or a configuration by which this process joins a world that its caller started.
    comm: a communicator of the caller (see `cobre.comm.factory.borrowed`), in place of a backend and of workers.

    Raises TypeError or ValueError for a wrong type, a number out of range, or arguments that exclude each other.
    """

    backend: str | BackendConfig = BackendKind.AUTO
    workers: int | None = None
    threads: int | None = None
    comm: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", checked_count("num_workers", self.workers))
        object.__setattr__(self, "threads", checked_count("threads", self.threads, MAX_THREADS))
        if self.comm is not None:
            require_communicator(self.comm)
            if self.workers is not None or self.backend != BackendKind.AUTO:
                raise ValueError("comm is a complete world: give either comm, or backend and num_workers")
        if isinstance(self.backend, BackendConfig) and self.workers is not None:
            raise ValueError(
                f"{type(self.backend).__name__} describes a world whose ranks have been started: num_workers cannot "
                "start more; give the number of its ranks as the configuration's size"
            )


ANY_WORLD = WorldRequest()


@dataclass(frozen=True, slots=True)
class Placement:
    """The backend by name, the number of workers to start, and the threads of each.

    size None: this process was started as a rank, and the backend knows the size. `Placement("shm", 4)` starts four.
    reason: for the number of workers and threads, if Cobre chose it.
    config: how this process joins its world; None: by its environment variables. comm: the caller's communicator, which
    replaces all these.
    """

    backend: str
    size: int | None
    threads: int = 1
    reason: str = field(default="", compare=False)
    config: BackendConfig | None = None
    comm: Any = None

    @classmethod
    def of(cls, backend: str, size: int | None, threads: int | None, reason: str) -> Self:
        """Use the requested threads, else an equal share of the cores; one thread where others started the ranks."""
        if threads is not None:
            return cls(backend, size, threads)
        return cls(backend, size, 1 if size is None else max(1, usable_cores() // size), reason)

    @property
    def is_joined(self) -> bool:
        """Whether this process is a rank that a launcher started."""
        return self.size is None


def choose_placement(
    request: WorldRequest = ANY_WORLD,
    environ: Mapping[str, str] = os.environ,
    *,
    threads_suffice: bool = True,
) -> Placement:
    """Decide where to run. Raises BackendError for an impossible request, before anything is started.

    In a world that a launcher or variables describe, this process is a rank. Otherwise the requested number of workers
    is started; a single one is this process itself. Without a number it is this process with its threads, which are as
    fast as workers; or a worker for each usable core, where a backend for workers was named or where threads do not
    suffice. A configuration or a communicator of the caller takes precedence.
    """
    if request.comm is not None or isinstance(request.backend, BackendConfig):
        return _placement_in_callers_world(request)
    kind, num_workers, threads = _kind(request.backend), request.workers, request.threads
    if kind is BackendKind.AUTO and environ.get(BACKEND_VARIABLE):
        kind = _kind(environ[BACKEND_VARIABLE], BACKEND_VARIABLE)
    if not isinstance(kind, BackendKind):
        config_type = registered_config(kind)
        size = None if config_type.is_rank(environ) else num_workers or usable_cores()
        if size is None:
            config_type.from_env(environ)  # raises when its variables are partially set
        reason = ONE_THREAD_PER_RANK if size is None else "" if num_workers else WORKERS_OF_BACKEND
        return Placement.of(kind, size, threads, reason)
    if (joined := _joined_backend(kind, environ)) is not None:
        select_backend(joined.value, environ)  # raises when its variables are partially set
        reason = ONE_CORE if usable_cores() == 1 else ONE_THREAD_PER_RANK
        return Placement.of(joined.value, None, threads, reason)
    if kind is BackendKind.MPI:
        require_installed(kind, installed_backends())  # a launcher without mpi4py would not help
        raise BackendNotAvailableError("mpi", _how_to_start_mpi(num_workers or usable_cores(), environ))
    is_alone = kind is BackendKind.LOCAL or (kind is BackendKind.AUTO and threads_suffice)
    size = num_workers or (1 if is_alone else usable_cores())
    reason = "" if num_workers else _reason(kind, is_alone=is_alone)
    if kind is BackendKind.LOCAL and size > 1:
        raise InitializationFailedError("local", f"local is one process; for {size} workers use shm (or auto)")
    if size == 1 and kind in (BackendKind.AUTO, BackendKind.LOCAL):
        return Placement.of("local", 1, threads, reason)
    return Placement.of("shm" if kind is BackendKind.AUTO else kind.value, size, threads, reason)


def _placement_in_callers_world(request: WorldRequest) -> Placement:
    """Place a rank in the world of the caller: with all cores if it is alone, else with one thread."""
    comm, config = request.comm, request.backend
    if isinstance(config, BackendConfig):
        placement = Placement(str(config.kind), None, config=config)
        size = 1 if isinstance(config, LocalConfig) else getattr(config, "size", None)
    else:
        placement = Placement(getattr(comm, "backend", BackendKind.MPI.value), None, comm=comm)
        size = comm.size if comm else None  # MPI.COMM_NULL has none, and is refused when it is used
    if request.threads is not None:
        return replace(placement, threads=request.threads)
    if usable_cores() == 1:
        return replace(placement, reason=ONE_CORE)
    if size == 1:
        return replace(placement, threads=usable_cores(), reason=THREADS_ARE_BEST)
    return replace(placement, reason=ONE_THREAD_PER_RANK)


def command_placement(
    request: WorldRequest, config: UncheckedConfig, environ: Mapping[str, str] = os.environ
) -> Placement:
    """Place `cobre run` as requested; where Cobre chooses the number of workers, none is idle.

    Over a tree, threads share only the leaves, workers the nodes of every stage: threads do not suffice.
    """
    placement = choose_placement(request, environ, threads_suffice=not config.is_tree)
    limit = config.max_useful_workers
    if request.workers is None and placement.size is not None and limit is not None and limit < placement.size:
        fewer = choose_placement(replace(request, workers=limit), environ)
        reason = f"no more workers than forward passes or scenarios ({limit})"
        return replace(fewer, reason="" if request.threads else reason)
    return placement


def script_placement(request: WorldRequest) -> Placement:
    """Place a script as requested; without a number of workers in this process, or as the rank that it is."""
    placement = choose_placement(request)
    is_decided = placement.is_joined or request.workers is not None
    return placement if is_decided else choose_placement(replace(request, workers=1))


def _reason(kind: BackendKind, *, is_alone: bool) -> str:
    """Return the reason for the number of workers and threads (measured: docs/adr/0034)."""
    if usable_cores() == 1:
        return ONE_CORE
    if is_alone:
        return THREADS_ARE_BEST
    return WORKERS_FOR_A_TREE if kind is BackendKind.AUTO else WORKERS_OF_BACKEND


def _how_to_start_mpi(ranks: int, environ: Mapping[str, str]) -> str:
    if slurm_tasks(environ) is not None:
        return f"srun started this process without MPI. Use {SRUN_WITH_MPI}"
    return f"MPI's own launcher starts the ranks: mpiexec -n {ranks} cobre run ..."


def call_on_ranks(
    placement: Placement, function: RankFunction[Value] | str, args: tuple[Any, ...], emit: EventListener
) -> list[Value]:
    """Call `function(comm, *args, emit)` on every rank; return the values of the ranks that this process started.

    function: a callable, or its name `module:function`, which only the ranks import. emit: called in this process with
    the events of rank 0. In a joined world the list has only the value of this rank. A communicator of the caller stays
    open.
    """
    if placement.is_joined:
        with _join(placement) as comm:
            return [_resolve(function)(comm, *args, emit if comm.rank == 0 else no_events)]
    if placement.backend == "local":
        with create_communicator(LocalConfig()) as comm:
            return [_resolve(function)(comm, *args, emit)]
    return launch.run(
        _on_rank,
        placement.size or 1,
        placement.backend,
        args=(function, args),
        environment=_forwarded_variables(os.environ),
        output=_print_escaped,
        on_message=lambda _, line: emit(json.loads(line)),
        forward_signals=_FORWARDED_SIGNALS,
        preload=_PRELOAD,
    )


def _join(placement: Placement) -> AbstractContextManager[Backend]:
    if placement.comm is not None:
        return borrowed(placement.comm)
    return create_communicator(placement.backend if placement.config is None else placement.config)


def _print_escaped(rank: int, stream: str, text: str) -> None:
    """Print a worker's output with control characters escaped: it may quote the case."""
    launch.forward(rank, stream, printable(text))


def _forwarded_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables for timeouts and tuning; the launcher sets those of ranks."""
    endings = ("_TIMEOUT_SECS", "_WAIT", "_WINDOW_BYTES", "_RANKS_PER_HOST", "_RING_BYTES", "_RING_PORTS")
    return {
        name: value for name, value in environ.items() if name.startswith(variables.PREFIXES) and name.endswith(endings)
    }


def _on_rank(comm: Backend, function: RankFunction[Value] | str, args: tuple[Any, ...]) -> Value:
    return _resolve(function)(comm, *args, _emit_to_parent if comm.rank == 0 else no_events)


def _resolve(function: RankFunction[Value] | str) -> RankFunction[Value]:
    resolved: RankFunction[Value] = resolve_name(function) if isinstance(function, str) else function
    return resolved


def _emit_to_parent(event: Event) -> None:
    launch.send_to_parent(encode(event))


def _kind(backend: str, variable: str = "") -> BackendKind | str:
    """Return a built-in backend, or the name of a registered one."""
    try:
        return BackendKind(str(backend).strip().lower())
    except ValueError:
        return registered_config(str(backend), variable).kind


def _joined_backend(kind: BackendKind, environ: Mapping[str, str]) -> BackendKind | None:
    """Return the backend that this process was started to join as a rank, if that was requested; else None."""
    if kind is BackendKind.AUTO:
        detected, _ = detect(environ, installed_backends())
        return None if detected is BackendKind.LOCAL else detected
    if kind is BackendKind.MPI and find_launch(environ) is not None:
        return kind
    required = {BackendKind.TCP: variables.REQUIRED_BY_TCP, BackendKind.SHM: variables.REQUIRED_BY_SHM}.get(kind, ())
    return kind if any(environ.get(name) for name in required) else None


@contextmanager
def raising_worker_errors() -> Iterator[None]:
    """Raise the CobreError of a worker in place of the WorkerError, which becomes its cause.

    Errors of communication, dead ranks and foreign exceptions stay WorkerErrors.
    """
    try:
        yield
    except launch.WorkerError as error:
        is_communication = isinstance(error.inner, CommError | BackendError)  # WorkerError says which rank failed
        if isinstance(error.inner, CobreError) and not is_communication:
            raise error.inner from error
        raise
