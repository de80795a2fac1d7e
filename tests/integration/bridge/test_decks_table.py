"""`make decks`: one row per deck of a folder, successful or not."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "benchmarks" / "decks.py"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Tabulate a valid case, an invalid one, a damaged archive, an archive without a deck, and an unrelated file."""
    folder = tmp_path_factory.mktemp("decks")
    shutil.copytree(ROOT / "examples" / "two_reservoirs", folder / "good")
    shutil.copytree(ROOT / "examples" / "two_reservoirs", folder / "refused")
    (folder / "refused" / "system" / "buses.json").write_text('{"buses": []}')
    (folder / "damaged.zip").write_bytes(b"not an archive")
    with zipfile.ZipFile(folder / "empty.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    (folder / "notes.md").write_text("# notes")
    output = tmp_path_factory.mktemp("table")
    command = [sys.executable, PROGRAM, folder, "--alone", "--output", output]
    environ = {**os.environ, "COBRE_COMM_BACKEND": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environ)
    rows = {row["deck"]: row for row in json.loads((output / "decks.json").read_text())}
    return done, rows, (output / "decks.md").read_text()


def test_failed_decks_do_not_stop_the_table(table):
    done, rows, page = table
    assert sorted(rows) == ["damaged.zip", "empty.zip", "good", "refused"]
    assert done.returncode == 3, "three of four do not run"
    assert "1 of 4 run" in done.stdout
    assert all(f"| {name} |" in page for name in rows)


def test_successful_case_has_complete_row(table):
    row = table[1]["good"]
    assert row["is_accepted"] and row["library_solves"] == 0
    # One pass: 12 forward solves, and 12 in each of two scenarios; the rest are backward and the bound.
    assert row["solves"] > 3 * 12 and row["first_bound"] > 0.0 and row["cpu_s"] > 0.0


def test_failed_rows_give_reason(table):
    rows = table[1]
    assert "neither a folder nor a zip archive" in rows["damaged.zip"]["remarks"][0]
    assert "holds no caso.dat" in rows["empty.zip"]["remarks"][0]
    assert not rows["refused"]["is_accepted"] and "errors" in rows["refused"]["remarks"][0]


def test_missing_folder_is_reported(tmp_path):
    done = subprocess.run([sys.executable, PROGRAM, tmp_path / "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no such folder" in done.stderr
