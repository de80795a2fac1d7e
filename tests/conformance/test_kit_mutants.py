"""The kit rejects every wrong communicator, and accepts one that only forwards calls."""

import pytest
from mutant_trials import SIZE, run_control, run_trials
from mutants import MUTANTS

from cobre.comm.testing import report
from cobre.comm.testing.harness import CellSetting
from cobre.comm.testing.profiles import profile
from cobre.comm.testing.report import bad

SHM = CellSetting(profile("shm"), profile("shm").variants[0], SIZE)


@pytest.mark.timeout(600)
def test_every_mutant_is_rejected_by_the_cases_it_names():
    results = list(run_trials(SHM))
    assert len(results) == sum(len(mutant.killed_by) for mutant in MUTANTS.values())
    assert not bad(results), report.failures(results)


@pytest.mark.timeout(600)
def test_control_passes_every_case():
    results = list(run_control(SHM))
    assert len(results) == 1
    assert not bad(results), report.failures(results)
