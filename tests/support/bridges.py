"""The bridges, for the tests that need them: the environments that `cobre convert` makes, kept in the repository."""

import os
import shutil
from pathlib import Path

import pytest
from cli_runs import cobre
from published_data import DECKS, ROOT

CACHE = Path(os.environ.get("COBRE_BRIDGE_CACHE", ROOT / ".venv-bridge"))
NOT_INSTALLED = 9
VERSIONS = {"novomodelo-bridge": "0.19.1", "cobre-bridge": "0.18.0"}


def bridge_environment(tmp_path, program="novomodelo-bridge"):
    """Return its folder, made on first use by the command itself; skip the test if it cannot be installed."""
    empty = tmp_path / "no_deck"
    empty.mkdir()
    (empty / "caso.dat").write_text("arquivos.dat\n")  # which is not there: the bridge refuses it, once it is installed
    command = ("convert", "newave", empty, tmp_path / "no_case", "--using", program)
    done = cobre(*command, timeout=900, XDG_CACHE_HOME=str(CACHE))
    if done.returncode == NOT_INSTALLED:
        pytest.skip(f"{program} cannot be installed here: {done.stderr}")
    return CACHE / "cobre" / f"bridge-{VERSIONS[program]}"


def shared_deck(name):
    folder = DECKS / name
    if not folder.is_dir():
        pytest.skip(f"there is no deck {folder}")
    return folder


def repaired_deck(folder):
    """Copy the official deck, with the three repairs that cobre-bridge needs."""
    shutil.copytree(shared_deck("newave_pmo_2018"), folder)
    _edit(folder / "SISTEMA.DAT", _with_sources)
    _edit(folder / "EXPH.DAT", _without_plant_318)
    _edit(folder / "REE.DAT", _with_end_of_individual_period)
    return folder


def _edit(path, change):
    lines = path.read_bytes().decode("latin-1").splitlines()
    path.write_bytes("".join(f"{line}\n" for line in change(lines)).encode("latin-1"))


def _with_sources(lines):
    """Add block and source to submarkets with a line of their own in the table of generation not simulated."""
    begin = next(at for at, line in enumerate(lines) if "NAO SIMULADAS" in line)
    end = next(at for at, line in enumerate(lines) if at > begin and line.strip() == "999")
    is_bare = [begin < at < end and line.strip().isdigit() for at, line in enumerate(lines)]
    assert sum(is_bare) == 4
    return [f"   {line.strip()}    1  NAOSIM" if bare else line for line, bare in zip(lines, is_bare, strict=True)]


def _without_plant_318(lines):
    at = next(at for at, line in enumerate(lines) if line.startswith(" 318 "))
    return lines[:at] + lines[at + 2 :]


def _with_end_of_individual_period(lines):
    end = next(at for at, line in enumerate(lines) if line.strip() == "999")
    assert end == 15
    return [f"{line[:23]:<23} 1 2018" if 3 <= at < end else line for at, line in enumerate(lines)]
