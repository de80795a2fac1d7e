"""Case directories, policies and results on disk. `load_case` and `validate`, for scripts, load on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from cobre.core.system_overview import System

    def validate(  # noqa: D103 - documented where it is defined
        path: str | Path, config_overrides: Mapping[str, Any] | None = None, *, output_dir: str | Path | None = None
    ) -> dict[str, Any]: ...


def load_case(path: "str | Path") -> "System":
    """Return the counts and entities of a case; `cobre.load_case` returns all of it.

    Raises CaseIoError if there is no such directory, and ValidationError with all errors of the case.
    """
    from cobre.core.system_overview import system_of  # noqa: PLC0415 - NumPy is not loaded before it is used
    from cobre.io import case  # noqa: PLC0415

    case.check_folder(path)
    return system_of(case.load_case(path))


def __getattr__(name: str) -> object:
    if name != "validate":
        raise AttributeError(f"module 'cobre.io' has no attribute {name!r}")
    # It needs noise models and plausibility, which this package does not know: there is one validation for all callers.
    return import_module("cobre.study.validation").validate_as_dict


def __dir__() -> list[str]:
    return sorted([*globals(), "validate"])
