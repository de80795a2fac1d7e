"""The short form of `make conformance`: the quick grid on every backend of one machine."""

import pytest

from cobre.comm.testing import report
from cobre.comm.testing.case import Depth
from cobre.comm.testing.harness import CellSetting, grid, run_cells, run_setting
from cobre.comm.testing.profiles import profile
from cobre.comm.testing.report import Outcome

SETTINGS = [
    ("local", "", 1),
    ("shm", "futex", 1),
    ("shm", "futex", 2),
    ("shm", "futex", 4),
    ("shm", "condvar", 2),
    ("tcp", "star", 2),  # one rank per host: all that a host's memory can do elsewhere goes through connections
]
PAYLOADS = ("gather/*", "reduce/*", "broadcast/*", "regions/gather*", "sequences/*", "programs/*")


def setting(backend, variant, size):
    backend_profile = profile(backend)
    return CellSetting(backend_profile, next(one for one in backend_profile.variants if one.name == variant), size)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("backend", "variant", "size"), SETTINGS)
def test_quick_grid_passes(backend, variant, size):
    results = list(run_setting(setting(backend, variant, size), Depth.QUICK))
    assert len(results) > 400
    assert all(result.outcome is Outcome.PASS for result in results), report.failures(results)


@pytest.mark.timeout(600)
def test_payloads_pass_through_smallest_window():
    narrow = setting("shm", "narrow", 3)
    cells = [cell for cell in grid(narrow, Depth.QUICK) if any(map(cell.matches, PAYLOADS))]
    results = list(run_cells(narrow, cells))
    assert len(results) > 300
    assert all(result.outcome is Outcome.PASS for result in results), report.failures(results)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("variant", "size"), [("host", 3), ("pairs", 4), ("ring", 2), ("ring", 3), ("ring-pairs", 4)])
def test_tcp_payloads_pass_inside_and_between_hosts(variant, size):
    shared = setting("tcp", variant, size)
    cells = [cell for cell in grid(shared, Depth.QUICK) if any(map(cell.matches, PAYLOADS))]
    results = list(run_cells(shared, cells))
    assert len(results) > 300
    assert all(result.outcome is Outcome.PASS for result in results), report.failures(results)
