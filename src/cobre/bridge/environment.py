"""The environment in which cobre-bridge runs.

It needs Python 3.12 and cobre-python, which is imported by the same name as this package, so that the two cannot be
installed together. Its environment is created once for each user; users may also name an existing one.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cobre.bridge.errors import NoBridgeError

PACKAGE = "cobre-bridge"
VERSION = "0.18.0"
OLDEST_PYTHON = (3, 12)
READY_FILE = "ready"  # written last: an environment without it is incomplete
_NAMES = ("python3.12", "python3.13", "python3.14", "python3")
# Variables that would make other packages, such as this one, importable before those of the environment.
_MISLEADING = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_OTHERWISE = f"name an environment that has {PACKAGE} with --bridge"
_PROBE = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
try:
    found = version("cobre-bridge")
except PackageNotFoundError:
    found = None
print(json.dumps([list(sys.version_info[:2]), found]))
"""


@dataclass(frozen=True, slots=True)
class Bridge:
    """An interpreter that has cobre-bridge."""

    python: Path
    version: str

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line that runs cobre-bridge; nothing outside of its environment is imported."""
        return [str(self.python), "-I", "-m", "cobre_bridge.cli", *map(str, arguments)]


def clean_environment() -> dict[str, str]:
    """The variables of this process, without those that lead an interpreter to other packages."""
    return {name: value for name, value in os.environ.items() if name not in _MISLEADING}


def bridge_at(path: Path) -> Bridge:
    """The bridge that a user named: the folder of an environment, its interpreter, or its command `cobre-bridge`.

    Raises NoBridgeError where cobre-bridge cannot be run from there.
    """
    python = _interpreter_of(path)
    facts = _probe(python)
    if facts is None:
        raise NoBridgeError(f"{path}: no working Python interpreter; give the folder of an environment")
    if facts[1] is None:
        raise NoBridgeError(f"{path}: {PACKAGE} is not installed there: {python} -m pip install {PACKAGE}=={VERSION}")
    return Bridge(python, facts[1])


def own_bridge(announce: Callable[[str], None]) -> Bridge:
    """The bridge in the user's cache, installed there if it is missing; `announce` is called with a message first.

    Raises NoBridgeError if it cannot be installed.
    """
    folder = own_folder()
    with _alone(folder):
        if not (folder / READY_FILE).exists():
            _install(folder, announce)
    return bridge_at(folder)


def own_folder() -> Path:
    """The folder of cobre-bridge's environment, in $XDG_CACHE_HOME or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "cobre" / f"bridge-{VERSION}"


def _interpreter_of(path: Path) -> Path:
    if path.is_dir():
        return path.absolute() / "bin" / "python"
    if path.name == PACKAGE:  # perhaps a link into the environment, as pipx makes them
        return path.resolve().parent / "python"
    return path.absolute()


def _probe(python: Path) -> tuple[tuple[int, int], str | None] | None:
    """Version of an interpreter, and of cobre-bridge in it; None when it does not run."""
    try:
        finished = subprocess.run(
            [python, "-I", "-c", _PROBE], env=clean_environment(), capture_output=True, check=True, timeout=60
        )
        version, bridge = json.loads(finished.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return (version[0], version[1]), bridge


def _install(folder: Path, announce: Callable[[str], None]) -> None:
    python = _new_enough_python()
    announce(
        f"{PACKAGE} {VERSION} is not installed yet. It will be installed once "
        f"in an environment of its own (about 700 MB): {folder}"
    )
    shutil.rmtree(folder, ignore_errors=True)
    _step([python, "-I", "-m", "venv", folder], f"no environment can be created in {folder}")
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    _step([*pip, f"{PACKAGE}=={VERSION}"], f"{PACKAGE} cannot be installed into {folder}")
    (folder / READY_FILE).write_text(f"{PACKAGE} {VERSION}\n", encoding="utf-8")


def _new_enough_python() -> Path:
    """The first interpreter that is new enough and runs: a name on the path may be a shim of a version manager.

    Raises NoBridgeError if there is none.
    """
    for candidate in _interpreters():
        facts = _probe(candidate)
        if facts is not None and facts[0] >= OLDEST_PYTHON:
            return candidate
    oldest = ".".join(map(str, OLDEST_PYTHON))
    raise NoBridgeError(f"{PACKAGE} needs Python {oldest} or newer, and there is none: install one, or {_OTHERWISE}")


def _interpreters() -> Iterator[Path]:
    """The present interpreter, those on the path, and the versions of pyenv that are not on the path."""
    yield Path(sys.executable)
    yield from (Path(found) for name in _NAMES if (found := shutil.which(name)))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob("versions/3.1[2-9]*/bin/python"))


def _step(command: list[str | Path], failure: str) -> None:
    """Run a step of the installation; its output is shown only if it fails, in a NoBridgeError."""
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).strip().splitlines()[-12:])
        raise NoBridgeError(
            f"{failure}:\n{said}\ncorrect that, or name an environment that has {PACKAGE} with --bridge"
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock, so that two commands do not create the same environment at once."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stream = folder.with_name(f"{folder.name}.lock").open("w")
    except OSError as error:
        raise NoBridgeError(
            f"{folder.parent} is not writable ({error.strerror}): set XDG_CACHE_HOME, or {_OTHERWISE}"
        ) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
