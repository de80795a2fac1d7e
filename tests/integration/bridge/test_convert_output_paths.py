"""Where `cobre convert` writes: into fresh directories, never through links. A stand-in for cobre-bridge shows it."""

import os
import signal
import venv
import zipfile
from pathlib import Path

import pytest
from cli_runs import cobre
from processes import finish, start_python, wait_for_pids, wait_until_gone

# Writes files by their paths, as cobre-bridge does, also through links.
STAND_IN = """
import os, sys, time
from pathlib import Path
deck, target = map(Path, sys.argv[-2:])
if (deck / "refused").exists():
    (target / "half.json").write_text("{}")
    sys.exit(f"a file is missing in {deck}")
if (deck / "slow").is_dir():
    (deck / "slow" / str(os.getpid())).touch()
    time.sleep(600)
(target / "system").mkdir()
for name in ("config.json", "stages.json", "system/buses.json"):
    (target / name).write_text("from the deck")
"""


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bridge") / "environment"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "cobre_bridge").mkdir()
    (packages / "cobre_bridge" / "__init__.py").touch()
    (packages / "cobre_bridge" / "cli.py").write_text(STAND_IN)
    about = packages / "cobre_bridge-0.18.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cobre-bridge\nVersion: 0.18.0\n")
    return folder


@pytest.fixture
def deck(tmp_path):
    (tmp_path / "deck").mkdir()
    (tmp_path / "deck" / "caso.dat").write_text("arquivos.dat\n")
    return tmp_path / "deck"


def convert(bridge, deck, case, *options):
    return cobre("convert", "newave", deck, case, "--bridge", bridge, *options)


def content(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


FRESH = ["config.json", "stages.json", "system", "system/buses.json"]


def test_new_case_appears_atomically(bridge, deck, tmp_path):
    done = convert(bridge, deck, tmp_path / "case")
    assert done.returncode == 3, "it is not a valid case, which the check after the conversion says"
    assert content(tmp_path / "case") == FRESH
    assert content(tmp_path) == ["case", *(f"case/{name}" for name in FRESH), "deck", "deck/caso.dat"]


@pytest.mark.parametrize("option", ["--json", "--force"])
def test_refused_deck_writes_nothing(bridge, deck, tmp_path, option):
    (deck / "refused").touch()
    done = convert(bridge, deck, tmp_path / "case", option)
    assert done.returncode == 3 and "cannot be converted" in done.stderr
    assert content(tmp_path) == ["deck", "deck/caso.dat", "deck/refused"]


def test_error_names_archive_not_temporary_folder(bridge, tmp_path):
    with zipfile.ZipFile(tmp_path / "deck.zip", "w") as archive:
        archive.writestr("CASO.DAT", "arquivos.dat\n")
        archive.writestr("refused", "")
    done = convert(bridge, tmp_path / "deck.zip", tmp_path / "case", "--json")
    assert done.returncode == 3 and f"a file is missing in {tmp_path / 'deck.zip'}" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("name", "asked", "found"), [("Dadger.rv2", "newave", "decomp"), ("DGER.DAT", "decomp", "newave")]
)
def test_error_names_deck_of_other_model(bridge, deck, tmp_path, name, asked, found):
    (deck / name).touch()
    done = cobre("convert", asked, deck, tmp_path / "case", "--bridge", bridge)
    assert done.returncode == 3
    assert f"this is a {found.upper()} deck, not one of {asked.upper()}: use `cobre convert {found}`" in done.stderr
    assert not (tmp_path / "case").exists()


def test_forced_conversion_follows_no_links(bridge, deck, tmp_path):
    case, elsewhere = tmp_path / "case", tmp_path / "elsewhere"
    (elsewhere / "system").mkdir(parents=True)
    for name in ("config.json", "system/buses.json"):
        (elsewhere / name).write_text("not to be touched")
    case.mkdir()
    (case / "notes.txt").write_text("mine")
    (case / "penalties.json").write_text("of an older case")
    (case / "config.json").symlink_to(elsewhere / "config.json")
    (case / "stages.json").symlink_to(elsewhere / "new.json")  # leads nowhere yet
    (case / "system").symlink_to(elsewhere / "system")
    convert(bridge, deck, case, "--force")
    assert {(elsewhere / name).read_text() for name in content(elsewhere) if name.endswith("json")} == {
        "not to be touched"
    }
    assert content(elsewhere) == ["config.json", "system", "system/buses.json"]
    assert content(case) == ["config.json", "notes.txt", "stages.json", "system", "system/buses.json"]
    assert not any(path.is_symlink() for path in case.rglob("*"))


def test_failed_forced_conversion_leaves_case_unchanged(bridge, deck, tmp_path):
    case = tmp_path / "case"
    case.mkdir()
    (case / "config.json").write_text("mine")
    (deck / "refused").touch()
    assert convert(bridge, deck, case, "--force").returncode == 3
    assert content(case) == ["config.json"] and (case / "config.json").read_text() == "mine"


@pytest.mark.parametrize("is_there", [True, False])
def test_link_as_output_path_is_refused(bridge, deck, tmp_path, is_there):
    if is_there:
        (tmp_path / "elsewhere").mkdir()
    (tmp_path / "case").symlink_to(tmp_path / "elsewhere")
    done = convert(bridge, deck, tmp_path / "case")
    assert done.returncode == 5 and "symbolic link" in done.stderr
    assert not is_there or content(tmp_path / "elsewhere") == []


def test_bridge_process_ends_with_command(bridge, deck, tmp_path):
    (deck / "slow").mkdir()
    command = ("-m", "cobre.cli", "convert", "newave", deck, tmp_path / "case", "--bridge", bridge)
    process = start_python(*command, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    pids = wait_for_pids(deck / "slow", 1)
    process.send_signal(signal.SIGKILL)
    finish(process)
    wait_until_gone(pids)
    assert not Path(tmp_path / "case").exists()


def test_archive_without_a_deck_is_refused_before_a_bridge_is_installed(tmp_path):
    archive, cache = tmp_path / "deck.zip", tmp_path / "cache"
    archive.write_bytes(b"")
    done = cobre("convert", "newave", archive, tmp_path / "case", XDG_CACHE_HOME=str(cache))
    assert done.returncode != 0
    assert "neither a folder nor a zip archive" in done.stderr
    assert not cache.exists()
    assert not (tmp_path / "case").exists()
