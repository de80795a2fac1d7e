"""The environments in which the bridges run: novomodelo-bridge, and cobre-bridge for cases of format 0.18.

Both need Python 3.12. cobre-bridge needs cobre-python, which is imported by the same name as this package, so that the
two cannot be installed together. An environment is created once for each user; users may also name an existing one.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cobre.errors import CobreError, ValidationError
from cobre.records import dataclass


class NoBridgeError(CobreError):
    """A bridge is not available and cannot be installed."""

    remedy = "install the converter that the message names, or give the folder of an environment that has it"


class DeckNotConvertedError(ValidationError):
    """A deck could not be converted; the message has the reason."""


OLDEST_PYTHON = (3, 12)
READY_FILE = "ready"  # written last: an environment without it is incomplete
_NAMES = ("python3.12", "python3.13", "python3.14", "python3")

# Variables that would make other packages, such as this one, importable before those of the environment.
_MISLEADING = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")

_PROBE = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
def found(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None
print(json.dumps([list(sys.version_info[:2]), {package: found(package) for package in sys.argv[1:]}]))
"""


@dataclass(frozen=True, slots=True)
class BridgeProgram:
    """A program that converts decks: its package, the version whose case format we read, and its module."""

    package: str
    version: str
    module: str
    case_format: str

    @property
    def otherwise(self) -> str:
        """Advice for users if it cannot be installed."""
        return f"name an environment that has {self.package} with --bridge"


BRIDGE_0_19 = BridgeProgram("novomodelo-bridge", "0.19.1", "novomodelo_bridge.cli", "0.19")
BRIDGE_0_18 = BridgeProgram("cobre-bridge", "0.18.0", "cobre_bridge.cli", "0.18")
PROGRAMS = {program.package: program for program in (BRIDGE_0_19, BRIDGE_0_18)}
"""By package, in the order in which an environment is searched for them."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """An interpreter that has a bridge, and the bridge's version."""

    python: Path
    version: str
    program: BridgeProgram = BRIDGE_0_19

    def command(self, *arguments: str | Path) -> list[str]:
        """Return the command line that runs the bridge; nothing outside of its environment is imported."""
        return [str(self.python), "-I", "-m", self.program.module, *map(str, arguments)]


def clean_environment() -> dict[str, str]:
    """Return the variables of this process, without those that lead an interpreter to other packages."""
    return {name: value for name, value in os.environ.items() if name not in _MISLEADING}


def bridge_at(path: Path, program: BridgeProgram | None = None) -> Bridge:
    """Find the bridge that a user named: the folder of an environment, its interpreter, or its command.

    Without a program: the one whose command was named, else the first of PROGRAMS that is installed there. Raises
    NoBridgeError if it cannot be run from there.
    """
    python = _interpreter_of(path)
    installation = _probe(python)
    if installation is None:
        raise NoBridgeError(f"{path}: no working Python interpreter; give the folder of an environment")
    requested = program or PROGRAMS.get(path.name)
    for candidate in PROGRAMS.values() if requested is None else (requested,):
        if version := installation[1][candidate.package]:
            return Bridge(python, version, candidate)
    expected = requested or BRIDGE_0_19
    raise NoBridgeError(
        f"{path}: {expected.package} is not installed there: {python} -m pip install "
        f"{expected.package}=={expected.version}"
    )


def managed_bridge(announce: Callable[[str], None], program: BridgeProgram = BRIDGE_0_19) -> Bridge:
    """Return the bridge in the user's cache, installed there if it is missing; call `announce` with a message first.

    Raises NoBridgeError if it cannot be installed.
    """
    folder = managed_folder(program)
    with _installation_lock(folder, program):
        if not (folder / READY_FILE).exists():
            _install(folder, program, announce)
    return bridge_at(folder, program)


def managed_folder(program: BridgeProgram = BRIDGE_0_19) -> Path:
    """Return the folder of a bridge's environment, in $XDG_CACHE_HOME or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "cobre" / f"bridge-{program.version}"


def _interpreter_of(path: Path) -> Path:
    if path.is_dir():
        return path.absolute() / "bin" / "python"
    if path.name in PROGRAMS:  # perhaps a link into the environment, as pipx makes them
        return path.resolve().parent / "python"
    return path.absolute()


def _probe(python: Path) -> tuple[tuple[int, int], dict[str, str | None]] | None:
    """Return the version of an interpreter, and of each bridge in it; None when it does not run."""
    try:
        finished = subprocess.run(
            [python, "-I", "-c", _PROBE, *PROGRAMS],
            env=clean_environment(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        version, bridges = json.loads(finished.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return (version[0], version[1]), bridges


def _install(folder: Path, program: BridgeProgram, announce: Callable[[str], None]) -> None:
    python = _new_enough_python(program)
    name, pinned = program.package, f"{program.package}=={program.version}"
    announce(
        f"{name} {program.version} is not installed yet. It will be installed once "
        f"in an environment of its own (about 700 MB): {folder}"
    )
    shutil.rmtree(folder, ignore_errors=True)
    _run_installation_step([python, "-I", "-m", "venv", folder], f"no environment can be created in {folder}", program)
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    _run_installation_step([*pip, pinned], f"{name} cannot be installed into {folder}", program)
    (folder / READY_FILE).write_text(f"{name} {program.version}\n", encoding="utf-8")


def _new_enough_python(program: BridgeProgram) -> Path:
    """Return the first interpreter that is new enough and runs: a name on the path may be a shim of a version manager.

    Raises NoBridgeError if there is none.
    """
    for candidate in _interpreters():
        installation = _probe(candidate)
        if installation is not None and installation[0] >= OLDEST_PYTHON:
            return candidate
    oldest = ".".join(map(str, OLDEST_PYTHON))
    raise NoBridgeError(
        f"{program.package} needs Python {oldest} or newer, and there is none: install one, or {program.otherwise}"
    )


def _interpreters() -> Iterator[Path]:
    """Yield the present interpreter, those on the path, and the versions of pyenv that are not on the path."""
    yield Path(sys.executable)
    yield from (Path(found) for name in _NAMES if (found := shutil.which(name)))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob("versions/3.1[2-9]*/bin/python"))


def _run_installation_step(command: list[str | Path], failure: str, program: BridgeProgram) -> None:
    """Run a step of the installation; its output is shown only if it fails, in a NoBridgeError."""
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        output = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).strip().splitlines()[-12:])
        raise NoBridgeError(f"{failure}:\n{output}\ncorrect that, or {program.otherwise}")


@contextmanager
def _installation_lock(folder: Path, program: BridgeProgram) -> Iterator[None]:
    """Hold a lock, so that two commands do not create the same environment at once."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stream = folder.with_name(f"{folder.name}.lock").open("w")
    except OSError as error:
        raise NoBridgeError(
            f"{folder.parent} is not writable ({error.strerror}): set XDG_CACHE_HOME, or {program.otherwise}"
        ) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
