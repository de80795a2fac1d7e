"""The printed files as a cluster would read them."""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TWO_RESERVOIRS = ROOT / "examples" / "two_reservoirs"


def cobre(*words, **options):
    """Run the command `cobre` and return its standard output; `check=False` returns the whole outcome."""
    check = options.pop("check", True)
    command = [sys.executable, "-m", "cobre.cli", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **options)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(text):
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def pod_template(kinds):
    if "Job" in kinds:
        return kinds["Job"]["spec"]["template"]
    [replicated] = kinds["JobSet"]["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]["template"]
