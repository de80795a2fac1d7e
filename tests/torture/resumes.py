"""Studies killed at random instants and resumed until they end: same digest, no leftovers."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from forked_worlds import SHM
from tally import Tally

from cobre.runs.content import read_run_content

CASE = Path(__file__).parents[2] / "examples" / "two_reservoirs"
ITERATIONS = 12
MAX_KILLS = 3
LIMIT_S = 300.0


def _command(case, output, workers):
    flags = ["--output", output, "--iterations", ITERATIONS, "--workers", workers, "--checkpoint-every", 3]
    return [sys.executable, "-m", "cobre.cli", "run", case, *flags, "--quiet", "--no-report", "--auto-resume"]


def killed_and_resumed(count, seed):
    tally = Tally("studies killed and resumed")
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="cobre-torture-") as scratch:
        case = _small_case(Path(scratch))
        began = time.monotonic()
        reference = _digest(_finish(_command(case, Path(scratch) / "reference", 1)), Path(scratch) / "reference")
        usual_s = time.monotonic() - began
        for number in range(count):
            output = Path(scratch) / f"run-{number}"
            for _ in range(rng.randint(1, MAX_KILLS)):
                _kill_once(_command(case, output, rng.choice([1, 2])), rng.random() * usual_s)
            tally.trials += 1
            done = _finish(_command(case, output, rng.choice([1, 2])))
            if done is None:
                tally.add("hangs", f"run {number}")
            elif done.returncode:
                tally.add("other", f"run {number}: exit code {done.returncode}: {done.stderr[-400:]}")
            elif _digest(done, output) != reference:
                tally.add("wrong bits", f"run {number}: another digest than without a kill")
            left = [str(path.relative_to(output)) for path in output.rglob(".*")] + [
                name.name for name in SHM.iterdir()
            ]
            if left or (output / "run.lock").exists():
                tally.add("leaks", f"run {number}: {left or 'run.lock'}")
            shutil.rmtree(output, ignore_errors=True)
    return tally


def _small_case(folder):
    case = shutil.copytree(CASE, folder / "case", ignore=shutil.ignore_patterns("output"))
    config = json.loads((case / "config.json").read_text())
    config["simulation"]["selection"]["num_scenarios"] = 30
    (case / "config.json").write_text(json.dumps(config))
    return case


def _kill_once(command, after_s):
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # only the command: its ranks have separate process groups
        process.wait()


def _finish(command):
    try:
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None


def _digest(done, output):
    if done is None or done.returncode:
        raise RuntimeError(f"the study did not end: {done}")
    return read_run_content(output).digest
