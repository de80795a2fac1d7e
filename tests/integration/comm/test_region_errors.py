"""Errors of regions on every rank: sizes beyond a system limit, and fences of different regions."""

import resource

import numpy as np
import pytest

from cobre.comm import AllocationFailedError, CommError, MismatchedCallError, launch

MIB = 1 << 20
ON_HOSTS = {"COBRE_TCP_RANKS_PER_HOST": "2"}
ALONE = {"COBRE_TCP_RANKS_PER_HOST": "1"}


def create_region_under_limit(comm, limit_bytes, is_limited):
    """Make a region and a communicator of the node with a limit on sizes of files (ulimit -f), then without."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    if comm.rank in is_limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, former[1]))
    errors = [error_of(make) for make in (lambda: comm.create_shared_region(64 * MIB, np.int8), comm.split_local)]
    resource.setrlimit(resource.RLIMIT_FSIZE, former)
    with comm.create_shared_region(64 * MIB, np.int8), comm.split_local() as node:
        node.barrier()
    return errors


def error_of(make):
    try:
        make().close()
    except AllocationFailedError as error:
        return error
    return None


@pytest.mark.parametrize("backend,options", [("shm", {}), ("tcp", ON_HOSTS)], ids=["shm", "tcp"])
def test_region_beyond_host_limit_raises_on_every_rank(backend, options):
    for region, split in launch.run(create_region_under_limit, 2, backend, args=(4096, (0, 1)), environment=options):
        assert isinstance(region, AllocationFailedError) and region.requested_bytes == 64 * MIB
        assert isinstance(split, AllocationFailedError) and split.requested_bytes > 4096


def test_full_host_fails_region_on_all_ranks():
    """Ranks 0 and 1 on one host, ranks 2 and 3 on the other, which has none."""
    for region, split in launch.run(create_region_under_limit, 4, "tcp", args=(4096, (2, 3)), environment=ON_HOSTS):
        for error in (region, split):
            assert isinstance(error, AllocationFailedError) and "[2, 3]" in str(error)


def limit_memory(comm):
    """Limit the memory of the last rank and create a large region; return the error of each rank."""
    if comm.rank == comm.size - 1:
        resource.setrlimit(resource.RLIMIT_DATA, (256 * MIB, resource.RLIM_INFINITY))
    error = error_of(lambda: comm.create_shared_region(1024 * MIB, np.int8))
    comm.barrier()
    return error


def test_rank_without_memory_fails_region_on_all_ranks():
    errors = launch.run(limit_memory, 3, "tcp", environment=ALONE)
    assert all(isinstance(error, AllocationFailedError) for error in errors)
    assert "on ranks [2]" in str(errors[0]) and "on ranks [2]" in str(errors[1])


def fence_another(comm):
    regions = [comm.create_shared_region(3, np.int8) for _ in range(2)]
    try:
        regions[comm.rank].fence()
    except CommError as error:
        return error
    return None


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_fencing_different_regions_raises(backend):
    for error in launch.run(fence_another, 2, backend):
        assert isinstance(error, MismatchedCallError)
        assert "rank 0: fence (region 1) vs rank 1: fence (region 2) at call #3" in str(error)
