"""Errors by what a caller can do: the peer's classes, and built-in ones."""

import pickle
from pathlib import Path

import pytest

from cobre import errors
from cobre.io.findings import Finding, InvalidCaseError, code_named
from cobre.io.policies.policy_file import PolicyFileError
from cobre.io.storage.atomic import WriteError
from cobre.policy.store import PolicyMismatchError
from cobre.sddp.lp.failure import StageFailedError
from cobre.stochastic import NoiseModelError
from cobre.study.output.output_lock import OutputInUseError

BUILT_IN = {
    errors.ValidationError: ValueError,
    errors.PolicyIncompatibleError: ValueError,
    errors.CaseIoError: OSError,
    errors.OutputError: OSError,
    errors.SolverError: RuntimeError,
    errors.SimulationError: RuntimeError,
    errors.InternalError: RuntimeError,
}
OURS = {
    InvalidCaseError("case", (Finding(code_named("missing-file"), "a.json"),)): errors.ValidationError,
    NoiseModelError("a.parquet", "row 3", "is wrong"): errors.ValidationError,
    PolicyFileError(Path("policy.bin"), "is damaged"): errors.ValidationError,
    PolicyMismatchError("other plants"): errors.PolicyIncompatibleError,
    WriteError(Path("out"), "the disk is full", "buy one"): errors.OutputError,
    OutputInUseError("by pid 3"): errors.OutputError,
    StageFailedError("stage 3 is infeasible", 3, "infeasible", None): errors.SolverError,
}


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.__name__)
def test_errors_are_also_builtin_errors(kind):
    assert issubclass(kind, errors.CobreError)
    assert issubclass(kind, BUILT_IN[kind])
    assert kind.__module__ == "cobre.errors"


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
def test_specific_errors_are_caught_by_family(error):
    assert isinstance(error, OURS[error])


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
def test_errors_of_workers_keep_all_attributes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_solver_error_has_stage():
    assert StageFailedError("no", 3, "infeasible", None).stage == 3
    assert errors.SolverError("no").stage is None
