"""Case directories, policies and results on disk. `load_case` and `validate`, for scripts, load on first use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobre.io.case_overview import load_case as load_case
    from cobre.io.case_overview import validate as validate

_NAMES = ("load_case", "validate")


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'cobre.io' has no attribute {name!r}")
    from cobre.io import case_overview  # noqa: PLC0415 - modules of this package stay light until they are used

    return getattr(case_overview, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
