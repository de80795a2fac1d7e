"""Limits of a container: 64 MB of /dev/shm, no privileges, and a stop by SIGTERM."""

import json
import os
import re
import subprocess
import sys

import pytest
from manifests import DEPLOY, ROOT, TWO_RESERVOIRS
from network_hosts import NOT_PERMITTED, is_permitted

SMALL_SHM = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
NO_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


@pytest.mark.timeout(240)
@pytest.mark.skipif(not is_permitted(), reason=NOT_PERMITTED)
def test_study_runs_on_64_mb_of_shared_memory_without_rights(tmp_path):
    words = [
        sys.executable,
        "-m",
        "cobre.cli",
        "run",
        TWO_RESERVOIRS,
        "--output",
        tmp_path / "out",
        "--iterations",
        "2",
    ]
    command = ["unshare", "--mount", "sh", "-c", SMALL_SHM, "sh", *NO_RIGHTS, *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["iterations"] == 2


def test_image_copies_all_that_the_build_reads():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    lines = re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.MULTILINE)
    copied = {word for line in lines for word in line.split()[:-1]}
    cmake = (ROOT / "CMakeLists.txt").read_text()
    read = {path.split("/")[0] for path in re.findall(r"\b((?:native|examples|src)/[\w./]+)", cmake)}
    assert {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "native", "src"} | read == copied
    assert all((ROOT / name).exists() for name in copied)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
