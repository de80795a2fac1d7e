"""Installed versions, for bug reports and for the record of a study, and whether the compiled part is up to date."""

import platform
from pathlib import Path

from cobre.errors import CobreError


class StaleBuildError(CobreError, ImportError):
    """The compiled part of Cobre is missing, or older than the Python sources next to it, as after `git pull`."""

    remedy = "build it again: `make demo` in a clone, otherwise `pip install .`"

    def __init__(self, state: str) -> None:
        super().__init__(f"the compiled part of Cobre (cobre._native) {state}: {self.remedy}")


def explain_import_error(error: BaseException | None) -> StaleBuildError | None:
    """Return what explains a name, a field or an argument that native code lacks; None if the build is up to date."""
    if not isinstance(error, (AttributeError, ImportError, TypeError)) or isinstance(error, CobreError):
        return None
    import hashlib  # noqa: PLC0415 - only when something is wrong

    try:
        from cobre import _native  # noqa: PLC0415 - may be what fails
    except ImportError:
        return StaleBuildError("is missing or cannot be loaded")
    interface = Path(__file__).with_name("_native.pyi")
    built_from = getattr(_native, "INTERFACE_DIGEST", "")
    if not interface.is_file() or built_from == hashlib.sha256(interface.read_bytes()).hexdigest():
        return None
    return StaleBuildError("was built from other sources than the Python files next to it")


def version_info() -> dict[str, str]:
    """Return versions of Cobre and its solver, available backends and the machine, by cobre-python's names.

    >>> sorted(cobre.version_info())
    ['arch', 'build', 'comm', 'solver', 'version', 'zstd']
    """
    from importlib import metadata  # noqa: PLC0415 - only when asked for

    from cobre import __version__  # noqa: PLC0415
    from cobre.comm import available_backends  # noqa: PLC0415

    return {
        "version": __version__,
        "solver": f"HiGHS {metadata.version('highspy')}",
        "comm": ", ".join(str(getattr(kind, "value", kind)) for kind in available_backends()),
        "zstd": "enabled",
        "arch": f"{platform.machine()}-{platform.system().lower()}",
        "build": "release",
    }
