"""Search for the bridges, and the messages when they are missing."""

import os
import sys
import venv
from pathlib import Path

import pytest

from cobre.bridge.conversion import DeckRequest
from cobre.bridge.environment import (
    BRIDGE_0_18,
    BRIDGE_0_19,
    NoBridgeError,
    bridge_at,
    clean_environment,
    managed_bridge,
    managed_folder,
)


def test_environment_without_bridge_raises(tmp_path):
    venv.create(tmp_path / "environment", with_pip=False)
    with pytest.raises(NoBridgeError, match=r"novomodelo-bridge is not installed there: .*install novomodelo-bridge=="):
        bridge_at(tmp_path / "environment")
    with pytest.raises(
        NoBridgeError, match=r"cobre-bridge is not installed there: .*pip install cobre-bridge==0\.18\.0"
    ):
        bridge_at(tmp_path / "environment" / "bin" / "python", BRIDGE_0_18)


@pytest.mark.parametrize(
    ("installed", "wanted", "expected"),
    [
        (["cobre-bridge"], None, "cobre-bridge"),
        (["novomodelo-bridge"], None, "novomodelo-bridge"),
        (["cobre-bridge", "novomodelo-bridge"], None, "novomodelo-bridge"),
        (["cobre-bridge", "novomodelo-bridge"], BRIDGE_0_18, "cobre-bridge"),
    ],
)
def test_installed_bridge_of_environment_is_found(tmp_path, installed, wanted, expected):
    venv.create(tmp_path, symlinks=True)
    packages = next(tmp_path.glob("lib/python*/site-packages"))
    for name in installed:
        about = packages / f"{name.replace('-', '_')}-0.18.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.18.0\n")
    found = bridge_at(tmp_path, wanted)
    assert found.program.package == expected
    assert found.command("x")[3] == f"{expected.replace('-', '_')}.cli"


def test_bridges_have_separate_folders():
    assert managed_folder(BRIDGE_0_18).name == "bridge-0.18.0"
    assert managed_folder().name == managed_folder(BRIDGE_0_19).name == "bridge-0.19.1"


def test_folder_without_environment_raises(tmp_path):
    with pytest.raises(NoBridgeError, match="no working Python interpreter"):
        bridge_at(tmp_path)


def test_cache_location_follows_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert managed_folder().parent == tmp_path / "cobre"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert managed_folder().parent == tmp_path / "home" / ".cache" / "cobre"


def test_uncreatable_cache_raises(tmp_path, monkeypatch):
    (tmp_path / "cobre").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoBridgeError, match="set XDG_CACHE_HOME, or name an environment"):
        managed_bridge(print)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this interpreter is new enough itself")
def test_missing_recent_python_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    said = []
    with pytest.raises(NoBridgeError, match=r"needs Python 3\.12 or newer"):
        managed_bridge(said.append)
    assert said == []


def test_bridge_runs_without_our_pythonpath(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
    assert "PYTHONPATH" not in clean_environment()
    assert clean_environment()["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(("model", "options"), [("newave", []), ("decomp", ["--no-fcf"])])
def test_bridge_gets_only_options_that_it_has(model, options):
    """Only DECOMP decks have the option for the cost-to-go after the end."""
    request = DeckRequest(model, Path("deck"), Path("case"), has_boundary_policy=False)
    assert request.arguments(Path("deck"), Path("case")) == [
        "convert",
        model,
        *options,
        "--",
        Path("deck"),
        Path("case"),
    ]
