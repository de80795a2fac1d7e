"""Studies as users start them: `cobre run` in a process, watched through its log."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from processes import wait_until

from cobre.cli.main import main
from cobre.runs.content import read_run_content
from cobre.runs.events import read_events

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICK_CASE = EXAMPLES / "two_reservoirs"
SLOW_CASE = EXAMPLES / "four_regions"
LIMIT_S = 100.0
_started = []
LOCAL = ("--backend", "local", "--threads", "1")
SHM_2 = ("--backend", "shm", "--workers", "2")
TCP_2 = ("--backend", "tcp", "--workers", "2")
# Too long to finish by itself: the test ends such a run.
ENDLESS = ("--iterations", "100000")


def start_study(case, output, *flags, python=sys.executable, **environ):
    """Start `cobre run` in its own process group; the variables are added to ours."""
    settings = {**os.environ, **environ}
    arguments = ["-m", "cobre.cli", "run", case, "--output", output, "--plain", "--no-report", *flags]
    return start_command([python, *map(str, arguments)], settings)


def start_command(command, environ):
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    _started.append(process)
    return process


def end_started():
    """End all studies of a test, however it went; ranks end with the process that started them."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def end_of(process, limit_s=LIMIT_S):
    """Return exit code, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"it did not end within {limit_s} s: {process.communicate()}") from None
    return process.returncode, out, err


def run_study(case, output, *flags, **options):
    return end_of(start_study(case, output, *flags, **options))


def must_run(case, output, *flags, **options):
    """Run a study, which must succeed; return the digest over all results."""
    code, out, err = run_study(case, output, *flags, **options)
    assert code == 0, f"exit code {code}\n{out[-2000:]}\n{err[-4000:]}"
    return content_digest(output)


def content_digest(output):
    """Return the digest over bounds, policy file and simulated tables."""
    return read_run_content(output).digest


def summary_digests(output):
    """Return the digests of the policy and of the simulated tables that summary.json holds."""
    summary = json.loads((output / "summary.json").read_text())
    return summary["digest"], summary["simulation_digest"]


def events_of(output, kind=None):
    """Return the events that the run has written so far."""
    try:
        found = read_events(output)
    except FileNotFoundError:
        return []
    return [event for event in found if kind in (None, event["event"])]


def wait_for_iteration(output, number, process=None):
    """Wait until the run has finished an iteration; fail at once if the run has ended instead."""

    def is_there():
        numbers = [event["iteration"] for event in events_of(output, "iteration")]
        if process is not None and process.poll() is not None and max(numbers, default=0) < number:
            raise AssertionError(f"it ended before iteration {number}: {process.communicate()}")
        return max(numbers, default=0) >= number

    wait_until(is_there, f"iteration {number} is finished")


def checkpoints_in(output):
    return sorted((output / "checkpoints").glob("iteration-*.ckpt"))


def wait_for_checkpoint(output, process):
    def is_there():
        assert process.poll() is None or checkpoints_in(output), f"no checkpoint: {process.communicate()}"
        return checkpoints_in(output)

    return wait_until(is_there, "there is a checkpoint")


def children_of(pid):
    """Return the pids of all descendants of a process: ranks, and the processes that start and end them."""
    family = []
    for child in _children(pid):
        family += [child, *children_of(child)]
    return family


def _children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def ranks_of(process):
    """Wait for the ranks of a study that are separate processes; return their pids in rank order."""
    return wait_until(lambda: ranks_below(process.pid), "the ranks are there")


def ranks_below(pid):
    """Return the ranks below a process, which their names identify."""
    named = {child: _name(child) for child in children_of(pid)}
    ranks = {int(name.removeprefix("cobre rank ")): child for child, name in named.items() if "cobre rank" in name}
    return [ranks[rank] for rank in sorted(ranks)]


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def small_copy(case, folder, **training):
    """Copy a case and let it simulate few scenarios; settings of `training` replace the case's own."""
    target = folder / case.name
    shutil.copytree(case, target, ignore=shutil.ignore_patterns("output"))
    config = json.loads((target / "config.json").read_text())
    config["simulation"]["selection"]["num_scenarios"] = 12
    config["training"] |= training
    (target / "config.json").write_text(json.dumps(config))
    return target


class References:
    """Digests of uninterrupted runs of a case in one process, by the number of iterations; each is run once."""

    def __init__(self, case, folder):
        self._case = case
        self._folder = folder
        self._digests = {}

    def digest(self, iterations):
        if iterations not in self._digests:
            output = self._folder / str(iterations)
            flags = ["--output", output, *LOCAL, "--iterations", iterations, "--no-report", "--quiet"]
            # In this process, which has already loaded all modules.
            done = CliRunner().invoke(main, ["run", str(self._case), *map(str, flags)])
            assert done.exit_code == 0, done.output
            self._digests[iterations] = content_digest(output)
        return self._digests[iterations]
