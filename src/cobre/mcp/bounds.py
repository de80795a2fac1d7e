"""`cobre bound` for an assistant: a process of its own, which is ended when it takes too long."""

import json
import subprocess
from pathlib import Path
from typing import Any

from cobre.io.storage.lock_file import is_in_use
from cobre.mcp.errors import JobError
from cobre.mcp.jobs import cobre_command, job_environment


def compute_bound(run: Path, method: str, paths: int, time_limit_s: float) -> dict[str, Any]:
    """What the run's new bound.json holds; raises JobError for a run in progress, and with what `cobre bound` says."""
    if is_in_use(run):
        raise JobError(f"a study is running in {run}: wait for it to end")
    options = ["--method", method, "--paths", str(paths), "--json"]
    try:
        done = subprocess.run(
            [*cobre_command("bound"), *options, str(run)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=job_environment(),
            timeout=time_limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"no bound within {time_limit_s:g} s: allow more time, or ask for the method sampled with fewer paths"
        raise JobError(message) from error
    if done.returncode:
        raise JobError(done.stderr.strip() or f"cobre bound ended with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return {"job": str(run), **found}
