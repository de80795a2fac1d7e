"""Cobre: distributed SDDP training that returns the same bits everywhere.

`load_case`, `validate`, `train` and `simulate` are all that a script needs. Importing this package starts nothing and
loads nothing heavy: no process, no socket, no MPI, no solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cobre.core.case import Case as Case
    from cobre.io.case import load_case as load_case
    from cobre.io.problems import InvalidCaseError as InvalidCaseError
    from cobre.study.api import simulate as simulate
    from cobre.study.api import train as train
    from cobre.study.api import validate as validate
    from cobre.study.policy import Policy as Policy
    from cobre.study.results import SimulationResult as SimulationResult
    from cobre.study.results import TrainingResult as TrainingResult

_HOMES = {
    "Case": "cobre.core.case",
    "InvalidCaseError": "cobre.io.problems",
    "Policy": "cobre.study.policy",
    "SimulationResult": "cobre.study.results",
    "TrainingResult": "cobre.study.results",
    "load_case": "cobre.io.case",
    "simulate": "cobre.study.api",
    "train": "cobre.study.api",
    "validate": "cobre.study.api",
}

__all__ = [  # noqa: PLE0604 - names of _HOMES
    *_HOMES,
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'cobre' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
