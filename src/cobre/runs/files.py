"""Whether a directory holds a run, by the files in it. Light to import."""

from pathlib import Path

from cobre.core.file_names import POLICY, POLICY_FILE, RUN_FILES

_RESULT_FILES = (*RUN_FILES[2:], f"{POLICY}/{POLICY_FILE}")


def is_run_folder(folder: Path) -> bool:
    """Return whether a run has written to this directory, even if only its log."""
    return any((folder / name).exists() for name in RUN_FILES)


def has_results(folder: Path) -> bool:
    """Return whether a run has left results in this directory; symbolic links do not count."""
    paths = (folder / name for name in _RESULT_FILES)
    return any(path.is_file() and not path.is_symlink() for path in paths)
