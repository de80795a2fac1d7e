"""Ranks that fence different regions: refused on every rank, naming both (clause 2)."""

import numpy as np
import pytest

from cobre.comm import CommError, MismatchedCallError, launch


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
