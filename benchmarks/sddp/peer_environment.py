"""cobre-python in a virtual environment of its own: it has our package's name, and needs Python 3.12 or newer.

As a script it makes the environment (`make peer-environment`), or says why it cannot.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from collectives.environments import Environment, UnavailableError, run_or_say  # noqa: E402

FOLDER = ROOT / ".venv-peer"
REQUIREMENTS = ("cobre-python==0.18.0", "numpy", "pyarrow")
PROBE = (
    "import cobre, numpy, pyarrow; from importlib.metadata import version; cobre.run.run; "
    "print('cobre-python', version('cobre-python'))"
)
INTERPRETER_VARIABLE = "COBRE_PEER_INTERPRETER"
OLDEST = (3, 12)
NAMES = ("python3.12", "python3.13", "python3.14", "python3")
PROBE_TIMEOUT_S = 30


def peer_environment() -> Environment:
    """The environment, made or to be made; raises `UnavailableError` when no interpreter is new enough."""
    python = FOLDER / "bin" / "python"
    interpreter = python if python.exists() else find_interpreter()
    return Environment(FOLDER, REQUIREMENTS, PROBE, interpreter)


def find_interpreter() -> Path:
    """The first one that runs and is new enough."""
    for candidate in candidates():
        if is_new_enough(candidate):
            return candidate
    wanted = ".".join(map(str, OLDEST))
    raise UnavailableError(f"no Python {wanted} or newer was found; {INTERPRETER_VARIABLE} may name one")


def candidates() -> Iterator[Path]:
    """The one that the user names, those on the path, and those that pyenv keeps off the path."""
    if named := os.environ.get(INTERPRETER_VARIABLE):
        yield Path(named)
    for name in NAMES:
        if found := shutil.which(name):
            yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/3.1[2-9]*/bin/python"))


def is_new_enough(python: Path) -> bool:
    """Whether it runs at all (a shim on the path may not) and has the version."""
    question = f"import sys; sys.exit(0 if sys.version_info >= {OLDEST} else 1)"
    try:
        run_or_say([python, "-c", question], PROBE_TIMEOUT_S)
    except UnavailableError:
        return False
    return True


def main() -> int:
    """Make it; not 0 when that is impossible."""
    try:
        print(f"{FOLDER.name}: {peer_environment().ensure()}")
    except UnavailableError as error:
        print(f"{FOLDER.name}: not available: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
