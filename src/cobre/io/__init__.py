"""Case directories, policies and results on disk. `load_case` and `validate`, for scripts, load on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from cobre.io.case_overview import load_case as load_case

    def validate(  # noqa: D103 - documented where it is defined
        path: str | Path, config_overrides: Mapping[str, Any] | None = None, *, output_dir: str | Path | None = None
    ) -> dict[str, Any]: ...


# By name: the module, and the name there. `validate` needs noise models and plausibility, which this package does not
# know: there is one validation for all callers.
_NAMES = {
    "load_case": ("cobre.io.case_overview", "load_case"),
    "validate": ("cobre.study.validation", "validate_as_dict"),
}


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'cobre.io' has no attribute {name!r}")
    module, target = _NAMES[name]
    return getattr(import_module(module), target)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
