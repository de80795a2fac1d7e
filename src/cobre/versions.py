"""Installed versions, for bug reports and for the record of a study."""

import platform


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
