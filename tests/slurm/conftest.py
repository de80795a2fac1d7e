"""One cluster of two nodes for all tests; `make slurm` checks first that it is possible."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import jobs  # noqa: E402 - in this folder
import prepare  # noqa: E402
from cluster import Cluster  # noqa: E402
from machines import mounts  # noqa: E402
from studies import summary_digests  # noqa: E402


@pytest.fixture(scope="session")
def cluster():
    problem = prepare.main()
    assert problem is None, f"no Slurm here: {problem}"
    before = leftovers()
    with Cluster("n1", "n2") as cluster:
        yield cluster
    assert leftovers() == before


@pytest.fixture(autouse=True)
def no_jobs_left(cluster):
    """Cancel the jobs of a test, so that they do not take the nodes of the next."""
    yield
    cluster.run("scancel", "--user=root")
    cluster.wait_for_nodes("idle")


def leftovers():
    """Return leftover Slurm daemons, network namespaces and mounts of the tests."""
    spaces = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout.split()
    comms = [file.read_text().strip() for file in Path("/proc").glob("[0-9]*/comm") if file.exists()]
    return (
        sorted(name for name in spaces if name.startswith("cobre-")),
        sorted(name for name in comms if name.startswith(("slurm", "munged"))),
        sorted(mounts()),
    )


@pytest.fixture(scope="session")
def digest(tmp_path_factory):
    """Return the digest of that many iterations on this machine, in one process."""
    folder = tmp_path_factory.mktemp("alone")
    digests = {}

    def digest_of_one_process(iterations):
        if iterations not in digests:
            output = folder / str(iterations)
            jobs.cobre("run", jobs.CASE, "--output", output, "--iterations", iterations, "--workers", 1, "--no-report")
            digests[iterations] = summary_digests(output)
        return digests[iterations]

    return digest_of_one_process
