"""Whole studies on both MPIs, on one node and on several: the digest is that of one process."""

import subprocess
import sys

import environments
import pytest
from studies import summary_digests

CASE = environments.ROOT / "examples" / "two_reservoirs"
FLAGS = ("--iterations", "4", "--plain", "--no-report")
# MPICH can pretend that ranks are on this many nodes, taken in turn. Open MPI has no such setting.
NODES = "MPIR_CVAR_NUM_CLIQUES"
REGIONS = """
import os
import numpy as np
from cobre.comm import create_communicator

nodes = int(os.environ["{nodes}"])
with create_communicator() as comm:
    mine = range(comm.rank % nodes, comm.size, nodes)
    node = comm.split_local()
    assert (node.rank, node.size) == (mine.index(comm.rank), len(mine)), "ranks of a node are together"
    assert comm.is_leader == (node.rank == 0)
    with comm.create_shared_region(8, np.int64) as region:
        if comm.is_leader:
            region.as_mut_array()[:] = 100 + comm.rank
        region.fence()
        assert region.as_array().tolist() == [100 + mine[0]] * 8, "one copy for each node"
        region.fence()
        region.as_mut_array(node.rank, node.rank + 1)[:] = comm.rank
        region.fence()
        assert region.as_array()[: len(mine)].tolist() == list(mine), "all ranks of a node write their part"
    node.close()
    os.write(1, b"right\\n")
"""


@pytest.fixture(scope="module")
def digest(tmp_path_factory):
    output = tmp_path_factory.mktemp("alone")
    command = [sys.executable, "-m", "cobre.cli", "run", CASE, "--output", output, "--workers", "1", *FLAGS]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return summary_digests(output)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_study_on_one_node_has_digest_of_one_process(mpi, tmp_path, digest, size):
    check_study(mpi, size, tmp_path / "out", digest)


@pytest.mark.parametrize("checked", ["0", "1"])
@pytest.mark.parametrize("nodes", [2, 3])
def test_study_on_several_nodes_has_digest_of_one_process(mpich, tmp_path, digest, nodes, checked):
    """Run four ranks on two nodes (2 + 2) and on three (2 + 1 + 1)."""
    check_study(mpich, 4, tmp_path / "out", digest, **{NODES: str(nodes), "COBRE_MPI_CHECKED": checked})


def check_study(mpi, size, output, digest, **environ):
    done = mpi.run(size, "-m", "cobre.cli", "run", str(CASE), "--output", str(output), *FLAGS, environ=environ)
    assert done.code == 0, done.output
    assert summary_digests(output) == digest


@pytest.mark.parametrize(("size", "nodes"), [(4, 2), (5, 3), (3, 3)])
def test_regions_work_on_several_nodes(mpich, size, nodes):
    done = mpich.run(size, "-c", REGIONS.format(nodes=NODES), environ={NODES: str(nodes)})
    assert (done.code, done.output.split()) == (0, ["right"] * size), done.output
