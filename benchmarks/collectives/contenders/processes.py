"""Ranks that our launcher does not start: run to their end, within a time, and nothing is left running."""

import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from collectives.contenders.base import WorldFailedError

BENCHMARKS = Path(__file__).resolve().parents[2]
STOP_GRACE_S = 5.0
LAST_LINES = 15

Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Command:
    """A command to start. descriptors: open files that it inherits."""

    words: Sequence[str]
    environ: Mapping[str, str]
    descriptors: Collection[int] = ()

    def start(self, log: Path) -> Process:
        """Start it in a process group of its own; whatever it says goes to the log."""
        with log.open("wb") as output:
            return subprocess.Popen(
                self.words,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.descriptors,
            )


def environ_for(environment: Path, *paths: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a rank in a virtual environment: its programs first on PATH, our modules, 1 thread."""
    programs = f"{environment / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    modules = os.pathsep.join(str(path) for path in (BENCHMARKS, *paths))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **one_thread, "PATH": programs, "PYTHONPATH": modules, **variables}


def run_to_end(commands: Sequence[Command], folder: Path, timeout_s: float) -> None:
    """Run all at once; a failure or a timeout becomes `WorldFailedError` with the last lines."""
    logs = [folder / f"log{number}.txt" for number in range(len(commands))]
    deadline = time.monotonic() + timeout_s
    processes: list[Process] = []
    try:
        processes += [command.start(log) for command, log in zip(commands, logs, strict=True)]
        for process, log in zip(processes, logs, strict=True):
            check_end(process, log, deadline)
    except subprocess.TimeoutExpired:
        raise WorldFailedError(f"did not end within {timeout_s:.0f} s") from None
    finally:
        for process in processes:
            stop(process)


def check_end(process: Process, log: Path, deadline: float) -> None:
    """Wait for one process; raise `WorldFailedError` with the end of its log if it failed."""
    code = process.wait(max(0.0, deadline - time.monotonic()))
    if code != 0:
        last_lines = "\n".join(log.read_text(errors="replace").strip().splitlines()[-LAST_LINES:])
        program = Path(os.fsdecode(process.args[0])).name if isinstance(process.args, list) else "a rank"
        raise WorldFailedError(f"{program} ended with {code}:\n{last_lines}")


def stop(process: Process) -> None:
    """Terminate it, then kill it; only after SIGTERM does mpiexec end its ranks."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
