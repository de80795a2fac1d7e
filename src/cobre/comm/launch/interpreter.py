"""The command that starts a new interpreter with the options of this one."""

import os
import site
import sys
from collections.abc import Mapping
from pathlib import Path

import cobre

PROGRAM = Path(__file__).with_name("rank_program.py")
# By attribute of sys.flags. Without -i and -q: ranks are not interactive.
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


def rank_command() -> list[str]:
    """The command that runs the program of a rank under this interpreter, with its flags."""
    return interpreter_command(PROGRAM)


def interpreter_command(program: Path) -> list[str]:
    """The command that runs a program of this package under this interpreter, with its flags."""
    # -u: what a dying rank has printed must not be lost in a buffer. -P: a file in the current directory must not
    # shadow a library before the rank has taken over its parent's sys.path.
    return [sys.executable, *interpreter_flags(), "-u", "-P", str(program)]


def interpreter_flags() -> list[str]:
    """The command-line options that this interpreter was started with, without -i and -q."""
    flags = [option for name, option in FLAGS.items() for _ in range(getattr(sys.flags, name))]
    flags += [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    return flags


def with_import_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with PYTHONPATH extended if `cobre` can only be imported through this process's `sys.path`."""
    root = Path(cobre.__file__).parent.parent
    python_path = environment.get("PYTHONPATH", "")
    known = [*python_path.split(os.pathsep), *site.getsitepackages(), site.getusersitepackages()]
    if root in map(_absolute, known) or root not in map(_absolute, sys.path):
        return dict(environment)
    # PYTHONPATH comes before the standard library and site-packages, so it is extended only if it must be.
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), python_path)))}


def _absolute(entry: str) -> Path:
    return Path(entry).absolute()
