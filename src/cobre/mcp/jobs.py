"""Studies that run in the background, each in its own `cobre run` process, which outlives the server."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from cobre.comm.cores import usable_cores
from cobre.comm.launch import interpreter_flags, new_process_environment
from cobre.core.file_names import LOCK_FILE, LOG_FILE, OUTPUT, SUMMARY_FILE
from cobre.errors import CobreError
from cobre.io.storage.atomic import as_write_error
from cobre.io.storage.confined import make_folder, no_links_below, open_own, open_untrusted, read_untrusted, remove_file
from cobre.io.storage.stored_json import read_stored_object
from cobre.records import dataclass
from cobre.runs.events import Event, EventFollower
from cobre.runs.files import is_run_folder
from cobre.runs.run_state import is_in_use
from cobre.runs.trained_case import changed_case
from cobre.runs.view import RunView, view_of
from cobre.study.output.previous_run import require_no_training
from cobre.study.placement import ANY_WORLD, WorldRequest


class JobError(CobreError):
    """Raised if a study cannot be started or stopped; the message gives the reason."""


# Signals to a study that another process has started: identified by the lock that it holds, reached by a pidfd.

_OWNER = re.compile(r"pid (\d+) on (\S+)")
_KERNEL_LOCKS = Path("/proc/locks")


def signal_owner(output: Path, signals: Sequence[signal.Signals]) -> None:
    """Send the signals to the process that runs the study in a directory; do nothing if it has ended.

    The lock file could name any process, and process ids are reused: only the holder of the lock is signalled.
    """
    pid, host = _read_owner(output)
    if host != socket.gethostname():
        raise _not_stoppable_here(output, pid, host)
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError) as error:  # not on this platform, or forbidden by a sandbox
        raise _not_stoppable_here(output, pid, host) from error
    try:
        # Checked after opening: the descriptor keeps referring to the process that has this id now.
        if not _holds_lock(pid, output / LOCK_FILE):
            raise _not_stoppable_here(output, pid, host)
        for signum in signals:
            signal.pidfd_send_signal(process, signum)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise JobError(f"process {pid} belongs to another user: ask them to stop it") from error
    finally:
        os.close(process)


def _read_owner(output: Path) -> tuple[int, str]:
    try:
        owner = _OWNER.search(read_untrusted(output / LOCK_FILE, 1000).decode(errors="replace"))
    except OSError:
        owner = None
    if owner is None:
        raise JobError(f"the process that runs the study in {output} is unknown: stop it where it was started")
    return int(owner[1]), owner[2]


def _not_stoppable_here(output: Path, pid: int, host: str) -> JobError:
    return JobError(f"the study in {output} is run by process {pid} on {host}: stop it there (kill -INT {pid})")


def _holds_lock(pid: int, lock: Path) -> bool:
    """Return whether the kernel lists this process as the holder: `1: FLOCK ADVISORY WRITE 1234 fe:01:5678 0 EOF`."""
    try:
        inode = lock.lstat().st_ino
        holders = [line.split() for line in _KERNEL_LOCKS.read_text().splitlines()]
    except OSError:
        return False
    return any(
        fields[1] != "->" and int(fields[4]) == pid and fields[5].rpartition(":")[2] == str(inode) for fields in holders
    )


MAX_STUDIES = 4
WORKERS_PER_CORE = 4
TAIL_BYTES = 4000
POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """The arguments of a run; with a `policy`, that one is simulated and nothing is trained."""

    case: Path
    output: Path
    iterations: int | None = None
    world: WorldRequest = ANY_WORLD
    resume: bool = False
    warm_start: Path | None = None
    time_limit_s: float | None = None
    report: bool = True
    overwrite: bool = False
    policy: Path | None = None
    scenarios: int | None = None

    def command(self) -> list[str]:
        """Return the command line. Paths are absolute, so that none is parsed as an option."""
        options = {
            "--output": self.output,
            "--iterations": self.iterations,
            "--workers": self.world.workers,
            "--threads": self.world.threads,
            "--backend": self.world.backend,
            "--warm-start": self.warm_start,
            "--time-limit": self.time_limit_s,
            "--policy": self.policy,
            "--scenarios": self.scenarios,
        }
        arguments = [str(part) for name, value in options.items() if value is not None for part in (name, value)]
        # With --json, the last line of the log is the error with kind and remedy, even before the first event.
        flags = (
            ["--json"]
            + ["--resume"] * self.resume
            + ["--overwrite"] * self.overwrite
            + ["--no-report"] * (not self.report)
        )
        return [*cobre_command("run" if self.policy is None else "simulate"), *arguments, *flags, str(self.case)]


def cobre_command(verb: str) -> list[str]:
    """Return the beginning of a `cobre` command line; -P: a file in the current folder must not shadow a library."""
    return [sys.executable, *interpreter_flags(), "-P", "-m", "cobre.cli", verb]


@dataclass(frozen=True, slots=True)
class Job:
    """A process, and its start in seconds since 1970."""

    process: subprocess.Popen[bytes]
    start_time: float

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process; None while it runs."""
        return self.process.poll()


class Jobs:
    """The studies that this server started; others are known by their output directories only."""

    def __init__(self, max_studies: int = MAX_STUDIES) -> None:
        self._max_studies = max_studies
        self._jobs: dict[Path, Job] = {}
        self._starting = threading.Lock()

    def start(self, request: StudyRequest) -> int:
        """Start a study and return its process id. Thread-safe."""
        with self._starting:
            self._check(request)
            self._jobs[request.output] = job = _start_process(request)
        return job.process.pid

    def job(self, output: Path) -> Job | None:
        """Return the job of an output directory; None for a study that was started elsewhere."""
        return self._jobs.get(output)

    def wait(self, output: Path, seconds: float) -> None:
        """Wait until the study has ended, at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self._is_running(output) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)

    def stop(self, output: Path, *, at_once: bool = False) -> None:
        """Stop the study after its iteration, like Ctrl-C; `at_once`: like a second Ctrl-C."""
        # Two different signals: two of the same kind may arrive as one.
        signals = (signal.SIGINT, signal.SIGTERM) if at_once else (signal.SIGINT,)
        job = self._jobs.get(output)
        if job is not None and job.exit_code is None:
            for signum in signals:
                job.process.send_signal(signum)
        elif is_in_use(output):
            signal_owner(output, signals)
        else:
            raise JobError(f"no study is running in {output}")

    def _is_running(self, output: Path) -> bool:
        job = self._jobs.get(output)
        return is_in_use(output) or (job is not None and job.exit_code is None)

    def _check(self, request: StudyRequest) -> None:
        running = [output for output in self._jobs if self._is_running(output)]
        if self._is_running(request.output):
            raise JobError(f"a study is running in {request.output}: wait for it, or choose another output")
        if len(running) >= self._max_studies:
            listed = ", ".join(map(str, running))
            raise JobError(f"{len(running)} studies are running already ({listed}): wait for one, or stop one")
        limit = WORKERS_PER_CORE * usable_cores()
        if max(request.world.workers or 1, request.world.threads or 1) > limit:
            raise JobError(
                f"this machine has {usable_cores()} usable cores: ask for at most {limit} workers or threads"
            )
        _check_output(request)


def _start_process(request: StudyRequest) -> Job:
    start_time = time.time()
    with no_links_below(request.output), _open_log(request) as log:
        process = subprocess.Popen(
            request.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=job_environment(),
            start_new_session=True,  # the study survives the server, and a Ctrl-C in its terminal
        )
    return Job(process, start_time)


def _open_log(request: StudyRequest) -> BinaryIO:
    path = request.output / LOG_FILE
    with as_write_error(path):
        make_folder(request.output)
        if not request.resume:
            remove_file(path)
        return os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def _check_output(request: StudyRequest) -> None:
    """Raise JobError or OutputError if the folder holds the case, other files, or a run that must not be replaced."""
    output = request.output
    if request.case.is_relative_to(output):
        raise JobError(f"{output} is the case directory: choose a separate directory, such as {request.case / OUTPUT}")
    if not output.exists():
        return
    if not output.is_dir():
        raise JobError(f"{output} is a file: choose a folder")
    is_run = is_run_folder(output)
    if not is_run and any(entry.name != LOG_FILE for entry in output.iterdir()):
        raise JobError(f"{output} contains files other than results: choose a new directory")
    if request.policy is not None:
        require_no_training(output)
    if is_run and not request.resume and not request.overwrite:
        raise JobError(f"{output} contains the results of a run: choose another output, or set resume or overwrite")


def log_tail(output: Path) -> str:
    """Return the last `TAIL_BYTES` that a study printed; empty if there is no log."""
    try:
        with os.fdopen(open_untrusted(output / LOG_FILE), "rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - TAIL_BYTES))
            content = stream.read(TAIL_BYTES)
    except OSError:
        return ""
    return content.decode(errors="replace").strip()


def job_environment() -> dict[str, str]:
    """Return this environment without variables that would make the study join another run as a rank."""
    return new_process_environment({"NO_COLOR": "1"})


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
    """Raised if a run has no result; the message gives the reason."""


def study_status(output: Path, jobs: Jobs) -> dict[str, Any]:
    """Return state, phase, last bounds, warnings and error of a study.

    state: starting, running, finished, stopped (by a signal or a limit; it can be resumed), failed, or killed.
    """
    follower = EventFollower(output)
    view = view_of(follower.read_new())
    if (job := jobs.job(output)) is not None and view.began < job.start_time:
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
    """Return the progress of the current iteration; None between iterations, and in the first second of one."""
    if view.progress is None:
        return None
    return {name: value for name, value in view.progress.items() if name not in ("event", "time")}


def study_result(output: Path, jobs: Jobs) -> dict[str, Any]:
    """Return the summary of a run that has ended."""
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
    """Describe a process that has written no event yet: it is starting, or has failed with the error in its log."""
    if job.exit_code is None:
        return {"job": str(output), "state": "starting"}
    error = log_tail(output) or f"it ended with exit code {job.exit_code}"
    printed = _printed_error(error)
    return {
        "job": str(output),
        "state": "failed",
        "error": printed.get("error") or error,
        "error_details": _details(printed or None),
    }


def _printed_error(log: str) -> dict[str, Any]:
    """Return the error that `--json` printed in the last line; empty if there is none."""
    try:
        content = json.loads(log.rsplit("\n", 1)[-1])
    except ValueError:
        return {}
    return content if isinstance(content, dict) and "exit_code" in content else {}


def _details(failed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return kind, remedy and details of an error, from the event of a failed run or from its printed JSON."""
    if failed is None:
        return None
    return {name: value for name, value in failed.items() if name not in ("event", "time", "error", "exit_code")}


def _bounds(last: Event | None) -> dict[str, Any] | None:
    return None if last is None else {name: last.get(name) for name in _BOUNDS}
