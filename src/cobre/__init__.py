"""Cobre: distributed SDDP training that returns the same bits everywhere.

`load_case`, `validate`, `train`, `simulate` and `bound` are all that a script needs; `changed` and `save_case` make
another case of it, `compare` says what that changed, and `system_map` draws it. `RiskMeasure`, `StoppingRule`,
`CutSelection` and `Sampler` are the bases of plug-ins. Scripts written for cobre-python find
`Study`, `Policy`, `run`, `io`, `results`, `errors`, `model`, `schema` and `write_policy_checkpoint` here.
Importing this package starts nothing and loads nothing heavy: no process, no socket, no MPI, no solver.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

__version__ = "0.2.0"

# Idle threads of OpenBLAS, which NumPy starts, spin for 2^26 cycles before they sleep: a fifth of the CPU time that a
# small command takes. 2^18 cycles, 0.1 ms, are enough between products of matrices that follow each other.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")

_HOMES = {
    "Case": "cobre.core.case",
    "CutSelection": "cobre.sddp.plugins.interfaces",
    "InvalidCaseError": "cobre.io.findings",
    "PluginError": "cobre.sddp.plugins.user_plugins",
    "Policy": "cobre.policy.object",
    "RiskMeasure": "cobre.sddp.plugins.interfaces",
    "Sampler": "cobre.sddp.plugins.interfaces",
    "SimulationResult": "cobre.study.results",
    "StoppingRule": "cobre.core.stopping",
    "Study": "cobre.compat.study_object",
    "StudyComparison": "cobre.comparison.result",
    "TrainingResult": "cobre.study.results",
    "bound": "cobre.study.bound",
    "changed": "cobre.io.saving.case_writer",
    "compare": "cobre.comparison.result",
    "load_case": "cobre.io.case",
    "save_case": "cobre.io.saving",
    "simulate": "cobre.study.api",
    "system_map": "cobre.study.study_record",
    "train": "cobre.study.api",
    "validate": "cobre.study.validation",
    "version_info": "cobre.versions",
    "write_policy_checkpoint": "cobre.compat.policy_checkpoint",
}
_MODULES = ("errors", "io", "model", "results", "run", "schema")

__all__ = [  # noqa: PLE0604 - names of _HOMES
    *_HOMES,
    *_MODULES,
    "__version__",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"cobre.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'cobre' has no attribute {name!r}")
    try:
        with without_collection():  # hundreds of modules make no garbage
            value = getattr(import_module(_HOMES[name]), name)
    except (AttributeError, ImportError) as error:
        if (stale := import_module("cobre.versions").explain_import_error(error)) is not None:
            raise stale from error
        raise
    globals()[name] = value
    return value


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection while hundreds of thousands of objects are made that nearly all stay.

    At the end all of them count as old. Otherwise the next collection of young objects would visit each of them, which
    takes a thirtieth of the time in which modules are loaded and a large case is prepared.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else the caller has frozen objects that must remain so
            gc.freeze()
            gc.unfreeze()
        if is_collecting:
            gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
