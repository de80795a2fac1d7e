"""Paths that the file system rejects, and directories with other files than those of a run."""

import os
import shutil
import subprocess

import pytest
from click.testing import CliRunner
from event_streams import phase, training

from cobre.cli.main import main
from cobre.runs.events import EventFollower, NothingToFollowError, encode

LONG = "X" * 300
SIMULATED = {"event": "simulation_finished", "scenarios": 9, "mean_cost": 2e6, "half_width": 1e3, "std_cost": 1e3}


def finished_run():
    return [*training(3), phase("simulation"), SIMULATED]


def error_message(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


def commands(name, folder):
    case = folder / "case"
    case.mkdir()
    return (
        ("report", name),
        ("top", name),
        ("explain", name),
        ("compare", name, folder),
        ("compare", folder, name),
        ("simulate", case, "--policy", name, "--output", folder / "out"),
    )


@pytest.mark.parametrize(("name", "words"), [(LONG, "File name too long"), ("a\0b", "null byte")])
def test_impossible_file_name_is_usage_error(tmp_path, name, words):
    for command in commands(name, tmp_path):
        done = error_message(*command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert words in done.stderr and LONG not in done.stderr


def test_link_to_itself_is_usage_error(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for command in commands(loop, tmp_path):
        done = error_message(*command)
        assert done.exit_code == 2 and "symbolic links" in done.stderr


def test_missing_directory_is_an_error_of_the_command(tmp_path):
    assert error_message("report", tmp_path / "none").exit_code == 8


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "events.jsonl").write_text("".join(encode(event) + "\n" for event in finished_run()))
    return folder


def replace_file(file, kind):
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "loop":
        file.symlink_to(file)
    else:
        os.mkfifo(file)


@pytest.mark.parametrize("kind", ["directory", "loop", "pipe"])
def test_irregular_event_file_is_reported(run, kind):
    replace_file(run / "events.jsonl", kind)
    done = error_message("top", run)
    assert done.exit_code == 8 and "events.jsonl is not a file" in done.stderr
    with pytest.raises(NothingToFollowError):
        EventFollower(run).check()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + "0" * 400, "1e999"])
def test_event_line_with_an_invalid_number_is_reported_and_skipped(run, number):
    with (run / "events.jsonl").open("a") as stream:
        stream.write(f'{{"event":"iteration","time":1.0,"iteration":99,"lower_bound":{number}}}\n')
    done = error_message("top", run)
    assert done.exit_code == 0 and "99" not in done.stdout.split("iteration")[1].split()[0]
    assert f"1 line of {run / 'events.jsonl'} cannot be read" in done.stderr


@pytest.mark.parametrize("field", ["time", "lower_bound", "half_width", "gap", "cuts", "solves", "load", "mean_cost"])
@pytest.mark.parametrize("value", ["words", [[]], {}, [[None, None]], None])
def test_event_values_of_wrong_type_are_tolerated(run, field, value):
    events = [event | {field: value} if field in event else event for event in finished_run()]
    (run / "events.jsonl").write_text("".join(encode(event) + "\n" for event in events))
    assert error_message("top", run).exit_code == 0


def test_init_prints_commands_that_a_shell_accepts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my 'new' case", "-dash"):
        lines = error_message("init", "--", name).stdout.splitlines()
        for line in lines[1:]:
            words = subprocess.run(
                f"printf '%s\\n' {line.strip()}", shell=True, capture_output=True, text=True, check=True
            ).stdout.splitlines()
            assert error_message(*words[1:2], words[2], *(["--help"] if words[1] == "run" else [])).exit_code == 0
        shutil.rmtree(name)
