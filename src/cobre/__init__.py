"""Cobre: distributed SDDP training that returns the same bits everywhere.

`load_case`, `validate`, `train`, `simulate` and `bound` are all that a script needs; `changed` and `save_case` make
another case of it, `compare` says what that changed, and `system_map` draws it. Scripts written for cobre-python find
`Study`, `Policy`, `run`, `io`, `results`, `errors`, `model`, `schema` and `write_policy_checkpoint` here.
Importing this package starts nothing and loads nothing heavy: no process, no socket, no MPI, no solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cobre import errors as errors
    from cobre import io as io
    from cobre import model as model
    from cobre import results as results
    from cobre import run as run
    from cobre import schema as schema
    from cobre.comparison.api import compare as compare
    from cobre.comparison.result import StudyComparison as StudyComparison
    from cobre.core.case import Case as Case
    from cobre.core.editing import changed as changed
    from cobre.io.case import load_case as load_case
    from cobre.io.problems import InvalidCaseError as InvalidCaseError
    from cobre.io.saving import save_case as save_case
    from cobre.study.api import simulate as simulate
    from cobre.study.api import train as train
    from cobre.study.api import validate as validate
    from cobre.study.bound import bound as bound
    from cobre.study.policy import Policy as Policy
    from cobre.study.policy_checkpoint import write_policy_checkpoint as write_policy_checkpoint
    from cobre.study.results import SimulationResult as SimulationResult
    from cobre.study.results import TrainingResult as TrainingResult
    from cobre.study.study_object import Study as Study
    from cobre.study.system_picture import system_map as system_map
    from cobre.versions import version_info as version_info

_HOMES = {
    "Case": "cobre.core.case",
    "InvalidCaseError": "cobre.io.problems",
    "Policy": "cobre.study.policy",
    "SimulationResult": "cobre.study.results",
    "Study": "cobre.study.study_object",
    "StudyComparison": "cobre.comparison.result",
    "TrainingResult": "cobre.study.results",
    "bound": "cobre.study.bound",
    "changed": "cobre.core.editing",
    "compare": "cobre.comparison.api",
    "load_case": "cobre.io.case",
    "save_case": "cobre.io.saving",
    "simulate": "cobre.study.api",
    "system_map": "cobre.study.system_picture",
    "train": "cobre.study.api",
    "validate": "cobre.study.api",
    "version_info": "cobre.versions",
    "write_policy_checkpoint": "cobre.study.policy_checkpoint",
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
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
