"""The command that starts a fresh interpreter like this one."""

import os
import site
import sys
from collections.abc import Mapping
from pathlib import Path

import cobre

PROGRAM = Path(__file__).with_name("worker_process.py")
FLAGS = {
    "debug": "-d",
    "optimize": "-O",
    "dont_write_bytecode": "-B",
    "no_user_site": "-s",
    "no_site": "-S",
    "ignore_environment": "-E",
    "isolated": "-I",
    "verbose": "-v",
    "bytes_warning": "-b",
}


def worker_command() -> list[str]:
    """Start the program of a rank under this interpreter with its flags."""
    return interpreter_command(PROGRAM)


def interpreter_command(program: Path) -> list[str]:
    """Start a program of this package under this interpreter with its flags."""
    # -u: what a dying rank printed must be out. -P: a file in the current folder must not shadow a library
    # before the rank has taken over its parent's sys.path.
    return [sys.executable, *interpreter_flags(), "-u", "-P", str(program)]


def interpreter_flags() -> list[str]:
    """The command-line options that this interpreter was started with, without -i and -q."""
    flags = [option for name, option in FLAGS.items() for _ in range(getattr(sys.flags, name))]
    flags += [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    return flags


def with_import_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Let a rank import `cobre` even where only this process's own `sys.path` knows the way to it."""
    root = Path(cobre.__file__).parent.parent
    python_path = environment.get("PYTHONPATH", "")
    known = [*python_path.split(os.pathsep), *site.getsitepackages(), site.getusersitepackages()]
    if root in map(_absolute, known) or root not in map(_absolute, sys.path):
        return dict(environment)
    # In front of the standard library, therefore only where nothing else leads there.
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), python_path)))}


def _absolute(entry: str) -> Path:
    return Path(entry).absolute()
