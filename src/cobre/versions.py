"""What is installed, for a report of a fault or for the record of a study."""

import platform


def version_info() -> dict[str, str]:
    """Versions of this program and its solver, the backends that are here, and the machine."""
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
