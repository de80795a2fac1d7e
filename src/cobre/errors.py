"""The errors of Cobre, by what a caller can do about them; each is also a subclass of a built-in error.

`except cobre.errors.ValidationError` and `except ValueError` both catch an invalid case. More precise errors of this
package are subclasses of these. Errors of communication (`cobre.comm.errors`: a lost worker, a missing backend) and
of started ranks (`cobre.comm.launch.WorkerError`) also descend from `CobreError`.
"""

from typing import Any

DISTRIBUTION = "pycobre"
"""The name on the package index, where `cobre` belongs to another project; the import is `cobre`."""


class CobreError(Exception):
    """Base class of all errors that Cobre raises on purpose.

    `except cobre.errors.CobreError` catches everything that a case, a file or a run can cause; other exceptions are
    bugs. remedy: what to do about it, as a command or a sentence; empty if a program can do nothing.
    """

    remedy: str = ""

    def details(self) -> dict[str, Any]:
        """Return details as JSON values: `kind` (name of the class), `remedy`, and those of the class.

        `--json` prints them with `error` and `exit_code`, the assistant server returns them with its text.
        """
        return {"kind": type(self).__name__, "remedy": self.remedy}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state, so that errors with any constructor arguments pass from a worker to its parent."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


NovomodeloError = CobreError  # the name by which scripts for novomodelo catch it


class ValidationError(CobreError, ValueError):
    """A case, a setting or a stored policy that cannot be used as it is."""

    remedy = "correct what the message names, and try again"


class PolicyIncompatibleError(CobreError, ValueError):
    """A policy that belongs to another study."""

    remedy = "give the policy that was trained on this case, or train again"


class CaseIoError(CobreError, OSError):
    """A case that cannot be read from the disk or written to it."""

    remedy = "check the path and its permissions"


class OutputError(CobreError, OSError):
    """Results that cannot be written: no space, no permission, or an output directory that is in use."""

    remedy = "choose another output directory, or make room for this one"


class SolverError(CobreError, RuntimeError):
    """Training that cannot continue, usually because a stage is infeasible.

    stage, iteration, scenario: where, as far as it is known; `scenario` is the forward pass.
    """

    stage: int | None = None
    iteration: int | None = None
    scenario: int | None = None

    def details(self) -> dict[str, Any]:
        """Add `stage`, `iteration` and `scenario`."""
        where = {"stage": self.stage, "iteration": self.iteration, "scenario": self.scenario}
        return super().details() | where


class SimulationError(CobreError, RuntimeError):
    """A simulation that cannot continue, usually because a stage is infeasible."""


class InternalError(CobreError, RuntimeError):
    """A fault of the program or of the machine, not of the case."""


class MissingLibraryError(CobreError, ModuleNotFoundError):
    """An optional library that is not installed; the message has the command that installs it.

    requirement: what pip installs; `[extra]` names an extra of this distribution. library: the name, which arrives
    from workers, too, where Python's own `name` does not.
    """

    def __init__(self, name: str, requirement: str) -> None:
        self.library = name
        self.remedy = install_command(requirement)
        super().__init__(f"{name} is not installed: {self.remedy}", name=name)

    def details(self) -> dict[str, Any]:
        """Add `library`."""
        return super().details() | {"library": self.library}


def install_command(requirement: str) -> str:
    """Return the command that installs a library, or an extra (`[plots]`), from the index or in a clone."""
    if not requirement.startswith("["):
        return f"pip install {requirement}"
    return f"pip install '{DISTRIBUTION}{requirement}' (in a clone: pip install '.{requirement}')"


def error_details(error: BaseException | None) -> dict[str, Any]:
    """Return `CobreError.details` of any exception; a foreign one has a kind only."""
    if isinstance(error, CobreError):
        return error.details()
    return {"kind": type(error).__name__, "remedy": ""}


def _rebuilt(kind: type[CobreError], args: tuple[Any, ...], facts: dict[str, Any]) -> CobreError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error
