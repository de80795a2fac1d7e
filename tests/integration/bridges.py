"""cobre-bridge, for the tests that need it: the environment that `cobre convert` makes, kept in the repository."""

import os
from pathlib import Path

import pytest
from cli_runs import cobre

ROOT = Path(__file__).resolve().parents[2]
SHARED_DECKS = ROOT.parent / "shared" / "decks"
CACHE = Path(os.environ.get("COBRE_BRIDGE_CACHE", ROOT / ".venv-bridge"))
NOT_INSTALLED = 9


def bridge_environment(tmp_path):
    """Its folder; made on first use by the command itself. Skips the test where it cannot be installed."""
    empty = tmp_path / "no_deck"
    empty.mkdir()
    done = cobre("convert", "newave", empty, tmp_path / "no_case", timeout=900, XDG_CACHE_HOME=str(CACHE))
    if done.returncode == NOT_INSTALLED:
        pytest.skip(f"cobre-bridge cannot be installed here: {done.stderr}")
    (folder,) = (CACHE / "cobre").glob("bridge-*/")
    return folder


def shared_deck(name):
    folder = SHARED_DECKS / name
    if not folder.is_dir():
        pytest.skip(f"there is no deck {folder}")
    return folder
