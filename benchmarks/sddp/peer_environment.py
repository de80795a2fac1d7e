"""The peers in virtual environments of their own: one has our package's name, and both need Python 3.12 or newer.

As a script it makes the environments (`make peer-environment`), or those that are named: `cobre-python`, `novomodelo`.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from collectives.environments import Environment, UnavailableError, run_or_raise  # noqa: E402


@dataclass(frozen=True, slots=True)
class Peer:
    """A program to compare with: the folder of its environment, what it holds, and a probe that prints its version."""

    folder: Path
    requirements: tuple[str, ...]
    probe: str


COBRE_PYTHON = Peer(
    folder=ROOT / ".venv-peer",
    requirements=("cobre-python==0.18.0", "numpy", "pyarrow"),
    probe=(
        "import cobre, numpy, pyarrow; from importlib.metadata import version; cobre.run.run; "
        "print('cobre-python', version('cobre-python'))"
    ),
)
NOVOMODELO = Peer(
    folder=ROOT / ".venv-novomodelo",
    # Its bridge is beside it: tests open exported runs with its dashboard and its comparison.
    requirements=("novomodelo-python==0.19.1", "novomodelo-bridge==0.19.1", "numpy", "pyarrow"),
    probe=(
        "import novomodelo, novomodelo_bridge, numpy, pyarrow; from importlib.metadata import version; "
        "novomodelo.run.run; print('novomodelo', version('novomodelo-python'))"
    ),
)
PEERS = {"cobre-python": COBRE_PYTHON, "novomodelo": NOVOMODELO}
INTERPRETER_VARIABLE = "COBRE_PEER_INTERPRETER"
OLDEST = (3, 12)
NAMES = ("python3.12", "python3.13", "python3.14", "python3")
PROBE_TIMEOUT_S = 30


def peer_environment(peer: Peer = COBRE_PYTHON) -> Environment:
    """Return the environment, existing or yet to be made; raises `UnavailableError` if no interpreter is new enough."""
    python = peer.folder / "bin" / "python"
    interpreter = python if python.exists() else find_interpreter()
    return Environment(peer.folder, peer.requirements, peer.probe, interpreter)


def find_interpreter() -> Path:
    """Return the first interpreter that runs and is new enough; raises `UnavailableError` if there is none."""
    for candidate in candidates():
        if is_new_enough(candidate):
            return candidate
    wanted = ".".join(map(str, OLDEST))
    raise UnavailableError(f"no Python {wanted} or newer was found; {INTERPRETER_VARIABLE} may name one")


def candidates() -> Iterator[Path]:
    """Yield the interpreter named by the user, those on PATH, and those of pyenv."""
    if named := os.environ.get(INTERPRETER_VARIABLE):
        yield Path(named)
    for name in NAMES:
        if found := shutil.which(name):
            yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/3.1[2-9]*/bin/python"))


def is_new_enough(python: Path) -> bool:
    """Return whether the interpreter runs (a pyenv shim may not) and is new enough."""
    question = f"import sys; sys.exit(0 if sys.version_info >= {OLDEST} else 1)"
    try:
        run_or_raise([python, "-c", question], PROBE_TIMEOUT_S)
    except UnavailableError:
        return False
    return True


def main(names: Sequence[str]) -> int:
    """Make them; returns how many could not be made."""
    failures = 0
    for name in names or PEERS:
        folder = PEERS[name].folder.name
        try:
            print(f"{folder}: {peer_environment(PEERS[name]).ensure()}")
        except UnavailableError as error:
            print(f"{folder}: not available: {error}", file=sys.stderr)
            failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
