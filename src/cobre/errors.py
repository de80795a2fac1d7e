"""The errors of Cobre, by what a caller can do about them; each is also a subclass of a built-in error.

`except cobre.errors.ValidationError` and `except ValueError` both catch an invalid case. More precise errors of this
package are subclasses of these. Errors of communication (`cobre.comm.errors`: a lost worker, a missing backend) and
of started ranks (`cobre.comm.launch.WorkerError`) descend from `CobreError`, too.
"""

from typing import Any


class CobreError(Exception):
    """Base class of all errors that Cobre raises on purpose.

    `except cobre.errors.CobreError` catches everything that a case, a file or a run can cause; other exceptions are
    bugs.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state, so that errors with any constructor arguments pass from a worker to its parent."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


NovomodeloError = CobreError  # the name by which scripts for novomodelo catch it


class ValidationError(CobreError, ValueError):
    """A case, a setting or a stored policy that cannot be used as it is."""


class PolicyIncompatibleError(CobreError, ValueError):
    """A policy that belongs to another study."""


class CaseIoError(CobreError, OSError):
    """A case that cannot be read from the disk or written to it."""


class OutputError(CobreError, OSError):
    """Results that cannot be written: no space, no permission, or an output directory that is in use."""


class SolverError(CobreError, RuntimeError):
    """Training that cannot continue, usually because a stage is infeasible.

    stage, iteration, scenario: where, as far as it is known; `scenario` is the forward pass.
    """

    stage: int | None = None
    iteration: int | None = None
    scenario: int | None = None


class SimulationError(CobreError, RuntimeError):
    """A simulation that cannot continue, usually because a stage is infeasible."""


class InternalError(CobreError, RuntimeError):
    """A fault of the program or of the machine, not of the case."""


class MissingLibraryError(CobreError, ModuleNotFoundError):
    """An optional library that is not installed; the message has the command that installs it."""

    def __init__(self, name: str, requirement: str) -> None:
        quoted = f"'{requirement}'" if "[" in requirement else requirement
        super().__init__(f"{name} is not installed: pip install {quoted}", name=name)


def _rebuilt(kind: type[CobreError], args: tuple[Any, ...], facts: dict[str, Any]) -> CobreError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error
