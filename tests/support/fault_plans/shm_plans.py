"""The plans only for shm: stale and live names, no space, wrong variables."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cobre.comm import cores
from cobre.comm.config import RENDEZVOUS_KINDS
from cobre.comm.testing.case import Depth, Params, needs_two_ranks
from cobre.comm.testing.inputs import MIB, combinations
from fault_plans.plan import (
    NotPermittedError,
    PlanError,
    PlanProcess,
    Ranks,
    check_closed,
    check_failure,
    check_in_time,
    check_refused,
    fault,
)
from fault_plans.plans import PROGRAM, right_bits

SHM_FOLDER = Path(cores.SHM_FOLDER)
LISTENERS = Path("/proc/net/unix")


def _rendezvous_grid(size: int, _depth: Depth) -> Sequence[Params]:
    return combinations(rendezvous=RENDEZVOUS_KINDS) if size > 1 else ()


def _is_joining(ranks: Ranks) -> bool:
    """Return whether rank 0 waits for the others to join under the plan's name, by a socket or a file."""
    return (SHM_FOLDER / ranks.world).exists() or f"/{ranks.world}\n" in LISTENERS.read_text()


def _wait_for_rank_0(ranks: Ranks) -> None:
    while not _is_joining(ranks):
        if time.monotonic() > ranks.deadline:
            raise PlanError(f"{ranks.world} never appeared")
        time.sleep(0.001)


def _run_world(ranks: Ranks) -> list[str]:
    """Run a whole world under the name of the plan, from start to end."""
    processes = ranks.start_all(PROGRAM)
    return [
        line for process in processes for line in (*right_bits(process, ranks.setting.size), *check_closed(process))
    ]


@fault("shm_stale_segment", (4,), grid=_rendezvous_grid, backend="shm")
def stale_segment(ranks: Ranks, params: Params) -> Sequence[str]:
    """Reuse the name of a run that died while ranks were joining.

    Only a rendezvous by name leaves one behind.
    """
    ranks.options = {"COBRE_SHM_RENDEZVOUS": params["rendezvous"]}
    first = ranks.start(0, PROGRAM)
    _wait_for_rank_0(ranks)
    first.send_signal(signal.SIGKILL)
    first.wait_for_end()
    if _is_joining(ranks) != (params["rendezvous"] == "name"):
        return [f"after the death of rank 0, rendezvous by {params['rendezvous']}: {_is_joining(ranks) = }"]
    return _run_world(ranks)


def _invalid_grid(size: int, depth: Depth) -> Sequence[Params]:
    kinds = ("empty", "zeros", "text") if depth is Depth.FULL else ("text",)
    return combinations(content=kinds) if size > 1 else ()


@fault("shm_invalid_segment", (4,), grid=_invalid_grid, backend="shm")
def invalid_segment(ranks: Ranks, params: Params) -> Sequence[str]:
    """Reuse a name whose creator died before it wrote a header."""
    content = {"empty": b"", "zeros": bytes(1 << 20), "text": b"not a segment\n" * 10_000}[params["content"]]
    segment = SHM_FOLDER / ranks.world
    segment.write_bytes(content)
    segment.chmod(0o600)  # with the permissions that ranks use: a segment that others can write is refused
    return _run_world(ranks)


@fault("shm_live_segment", (4,), grid=_rendezvous_grid, backend="shm")
def live_segment(ranks: Ranks, params: Params) -> Sequence[str]:
    """Start a run under the name of one whose ranks are still joining: it is refused, the first is not disturbed."""
    ranks.options = {"COBRE_SHM_RENDEZVOUS": params["rendezvous"]}
    first = ranks.start(0, PROGRAM)
    _wait_for_rank_0(ranks)
    second = ranks.start(0, PROGRAM)
    problems = check_refused(second, "InitializationFailedError", (ranks.world, str(first.pid), "COBRE_SHM_NAME"))
    others = [ranks.start(rank, PROGRAM) for rank in range(1, ranks.setting.size)]
    for process in (first, *others):
        problems += right_bits(process, ranks.setting.size) + check_closed(process)
    return problems


@fault("shm_unlinked_early", (4,), grid=_rendezvous_grid, backend="shm")
def unlinked_early(ranks: Ranks, params: Params) -> Sequence[str]:
    """Check that no name remains once all ranks have joined."""
    ranks.options = {"COBRE_SHM_RENDEZVOUS": params["rendezvous"]}
    task = {"action": "let_wait", "operation": "gather_into_region", "nbytes": 1000, "victim": 0}
    processes = ranks.start_all(task)
    processes[0].wait_for("ready")
    problems = [f"{ranks.world} is still there"] if _is_joining(ranks) else []
    processes[0].send_command("go")
    return problems + [line for process in processes for line in check_closed(process)]


@fault("shm_creator_dies", (5,), grid=needs_two_ranks, backend="shm")
def creator_dies(ranks: Ranks, _params: Params) -> Sequence[str]:
    """Kill a rank while it creates a region: it leaves no name behind as long as any rank survives."""
    processes = ranks.start_all({"action": "lose_the_creator", "nbytes": 64 * MIB, "victim": 0})
    died = float(processes[0].wait_for("dying")["time"])
    problems = []
    for process in processes[1:]:
        problems += check_failure(process, "PeerLostError", processes[0], ("create_shared_region",))
        problems += check_in_time(process, died) + check_closed(process)
    return problems


@fault("shm_no_space_for_region", (4,), grid=lambda _size, _depth: ({"mib": 40},), backend="shm")
def no_space_for_region(ranks: Ranks, params: Params) -> Sequence[str]:
    """Create a region that does not fit: every rank gets sizes and advice, and the world continues."""
    with small_shm(params["mib"]) as prefix:
        ranks.prefix = prefix
        processes = ranks.start_all({"action": "allocate", "nbytes": 64 * MIB})
        return [line for process in processes for line in (*_not_allocated(process), *check_closed(process))]


def _not_allocated(process: PlanProcess) -> list[str]:
    saw = process.wait_for("saw")
    if (saw["error"], saw["state"], saw["later"]) != ("AllocationFailedError", "open", [""]):
        return [f"rank {process.rank}: expected AllocationFailedError and a usable communicator, got {saw}"]
    words = ("64.0 MiB", "MiB free", "--shm-size")
    return [f"the message does not say '{word}': {saw['message']}" for word in words if word not in saw["message"]]


@fault("shm_no_space_for_world", (4,), grid=lambda _size, _depth: ({"mib": 1},), backend="shm")
def no_space_for_world(ranks: Ranks, params: Params) -> Sequence[str]:
    """Leave no room for the window: no rank joins, and rank 0 gives the reason."""
    with small_shm(params["mib"]) as prefix:
        ranks.prefix = prefix
        processes = ranks.start_all(PROGRAM, connect_timeout_s=2.0)
        problems = check_refused(processes[0], "SharedMemoryExhaustedError", ("MiB free", "--shm-size"))
        return problems + [
            line for process in processes[1:] for line in check_refused(process, "InitializationFailedError", ())
        ]


@contextmanager
def small_shm(mib: int) -> Iterator[Sequence[str]]:
    """Make a mount namespace with a small /dev/shm; yields the prefix that runs a command in it."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        raise NotPermittedError("needs unshare and nsenter (util-linux) for a small /dev/shm")
    script = f"mount -t tmpfs -o size={mib}m tmpfs /dev/shm && echo ready && exec cat"
    command = ["unshare", "--mount", "sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        line = holder.stdout.readline() if holder.stdout else b""
        if line.strip() != b"ready":
            errors = holder.stderr.read().decode(errors="replace").strip() if holder.stderr else ""
            raise NotPermittedError(f"a small /dev/shm needs a mount namespace, which is not permitted here: {errors}")
        try:
            yield ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--")
        finally:
            holder.terminate()


def _variable_grid(size: int, depth: Depth) -> Sequence[Params]:
    return ({"every": 1 if depth is Depth.FULL else 4},) if size == 1 else ()


@fault("shm_variables", (3,), grid=_variable_grid, backend="shm")
def variables(ranks: Ranks, params: Params) -> Sequence[str]:
    """Set missing, malformed and invalid variables: errors name the variable and what is expected."""
    rows = WRONG_VARIABLES[1 :: params["every"]] if params["every"] > 1 else WRONG_VARIABLES
    processes = [
        (row, ranks.start_with(number, PROGRAM, row.variables(ranks.world))) for number, row in enumerate(rows)
    ]
    return [line for row, process in processes for line in check_refused(process, row.error, row.words)]


# Wrong `COBRE_SHM_*` variables, and the required words about each.


MISSING = "MissingConfigurationError"
FAILED = "InitializationFailedError"


@dataclass(frozen=True, slots=True)
class WrongVariables:
    """Changes to a right environment of a world of one; an empty value removes the variable."""

    changes: Mapping[str, str]
    error: str
    words: tuple[str, ...] = field(default=())

    def variables(self, world: str) -> dict[str, str]:
        """Return the environment of a rank with these changes."""
        right = {
            "COBRE_COMM_BACKEND": "shm",
            "COBRE_SHM_NAME": world,
            "COBRE_SHM_RANK": "0",
            "COBRE_SHM_SIZE": "1",
            "COBRE_SHM_CONNECT_TIMEOUT_SECS": "2",
        }
        return {name: value for name, value in {**right, **self.changes}.items() if value}


def _wrong(variable: str, value: str, error: str, *words: str) -> WrongVariables:
    return WrongVariables({variable: value}, error, (variable, *words))


WRONG_VARIABLES = (
    _wrong("COBRE_SHM_NAME", "", MISSING, "not set"),
    _wrong("COBRE_SHM_RANK", "", MISSING, "not set"),
    _wrong("COBRE_SHM_SIZE", "", MISSING, "not set", "ranks"),
    _wrong("COBRE_SHM_RANK", "two", MISSING, "integer", "two"),
    _wrong("COBRE_SHM_SIZE", "64M", MISSING, "integer", "64M"),
    _wrong("COBRE_SHM_SIZE", "1000000", FAILED, "not bytes", "1000000"),
    _wrong("COBRE_SHM_SIZE", "0", FAILED, "0"),
    _wrong("COBRE_SHM_SIZE", "-4", FAILED, "-4"),
    _wrong("COBRE_SHM_RANK", "1", FAILED, "COBRE_SHM_SIZE"),
    _wrong("COBRE_SHM_RANK", "-1", FAILED, "-1"),
    _wrong("COBRE_SHM_NAME", "a/b", FAILED, "a/b"),
    _wrong("COBRE_SHM_NAME", "x" * 90, FAILED, "64"),
    _wrong("COBRE_SHM_TIMEOUT_SECS", "soon", MISSING, "soon"),
    _wrong("COBRE_SHM_TIMEOUT_SECS", "-1", FAILED, "positive"),
    _wrong("COBRE_SHM_CONNECT_TIMEOUT_SECS", "inf", FAILED, "inf"),
    _wrong("COBRE_SHM_OPERATION_TIMEOUT_SECS", "nan", FAILED, "nan"),
    _wrong("COBRE_SHM_WAIT", "spin", FAILED, "futex", "condvar"),
    _wrong("COBRE_SHM_RENDEZVOUS", "port", FAILED, "socket", "name"),
    _wrong("COBRE_SHM_WINDOW_BYTES", "lots", MISSING, "lots"),
    _wrong("COBRE_SHM_WINDOW_BYTES", "-5", FAILED, "-5"),
    WrongVariables({"COBRE_COMM_BACKEND": "pigeon"}, "InvalidBackendError", ("pigeon", "shm", "local")),
)
