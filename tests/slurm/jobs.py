"""Studies as jobs of a cluster: submit, inspect, freeze, wait."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "examples" / "two_reservoirs"
MANY = 400  # iterations: some seconds on a quiet machine
PATIENCE_S = 480.0


def cobre(*words, python=sys.executable):
    """Return the output of `cobre` on this machine."""
    command = [python, "-m", "cobre.cli", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def events(output, kind):
    """Return the events of that kind so far."""
    try:
        lines = (Path(output) / "events.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    events = []
    for line in lines:
        with suppress(ValueError):  # the last line may be half written
            events.append(json.loads(line))
    return [event for event in events if event.get("event") == kind]


def first_iteration_of_the_last_run(output):
    lines = [json.loads(line) for line in (Path(output) / "events.jsonl").read_text().splitlines()]
    last = max(number for number, event in enumerate(lines) if event["event"] == "run_started")
    return next(event["iteration"] for event in lines[last:] if event["event"] == "iteration")


@dataclass
class Job:
    """A job and its output."""

    cluster: object
    number: str
    folder: Path

    @property
    def log(self):
        return (self.folder / f"slurm-{self.number}.out").read_text(errors="replace")

    def field(self, name):
        """Return the output of `scontrol show job`."""
        text = self.cluster.run("scontrol", "show", "job", self.number).stdout
        return re.search(rf"\b{name}=(\S*)", text)[1]

    def wait(self, *states):
        """Wait until the job is in one of these states; return it."""
        self.cluster.wait_until(lambda: self.field("JobState") in states, f"job {self.number} {states}", PATIENCE_S)
        return self.field("JobState")

    def wait_for_iterations(self, count, output=None):
        """Wait until its study has trained that many iterations."""
        output = output or self.folder / "out"
        what = f"{count} iterations of job {self.number}"
        self.cluster.wait_until(lambda: self._has_trained(count, output), what, PATIENCE_S)

    def _has_trained(self, count, output):
        if len(events(output, "iteration")) >= count:
            return True
        assert self.field("JobState") not in ("FAILED", "CANCELLED", "TIMEOUT"), self.log
        return False


def submit(cluster, folder, script, environ=None):
    """Submit a script as a user does: from the folder of the study, with Cobre on the path."""
    file = folder / "job.sh"
    file.write_text(script)
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    done = cluster.run("sbatch", "--parsable", file, cwd=folder, env={"PATH": path, **(environ or {})})
    return Job(cluster, done.stdout.strip(), folder)


def ranks_of(output):
    """Return the processes of all ranks that write that output."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"run" in words and str(output).encode() in words and b"srun" not in words[0]:
                pids.append(int(entry.name))
    return pids


def freeze(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def unfreeze(pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def is_asked_to_stop(pid):
    """Return whether SIGTERM is pending for a frozen process, or has ended it after Slurm continued it by SIGCONT."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    if "(stopped)" not in status:
        return True
    pending = int(re.search(r"ShdPnd:\s*(\w+)", status)[1], 16) | int(re.search(r"SigPnd:\s*(\w+)", status)[1], 16)
    return bool(pending >> (signal.SIGTERM - 1) & 1)
