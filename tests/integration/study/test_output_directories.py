"""Files of a run are complete, and no other files are touched."""

import json
import os
import shutil
import subprocess

import pyarrow.parquet as pq
import pytest
from cli_runs import ONE_PROCESS, QUICK_CASE, cobre
from studies import ENDLESS, end_of, end_started, start_study, wait_for_checkpoint

import cobre as package

FAST = (*ONE_PROCESS, "--no-report")


@pytest.fixture
def case(tmp_path):
    """Return a copy of an example that a test may change."""
    return shutil.copytree(QUICK_CASE, tmp_path / "case", ignore=shutil.ignore_patterns("output"))


def change(path, **fields):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | fields))


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_of_earlier_run_are_removed(case, tmp_path):
    out = tmp_path / "out"
    assert cobre("run", case, "-o", out, "--iterations", 2, *FAST).returncode == 0
    assert "simulation/hydros.parquet" in files(out)
    (out / "notes.txt").write_text("mine")
    done = cobre("run", case, "-o", out, "--overwrite", "--time-limit", "0.0001", *FAST)
    assert done.returncode == 0, done.stderr
    assert files(out) == {
        "checkpoints/iteration-000001.ckpt",
        "events.jsonl",
        "notes.txt",
        "policy/policy.bin",
        "study.json",
        "summary.json",
        "training/convergence.parquet",
        "training/manifest.json",
    }
    assert pq.read_table(out / "training/convergence.parquet").num_rows == 1


def test_case_directory_is_refused_as_output(case):
    before = files(case)
    done = cobre("run", case, "-o", f"{case}/system/..", "--iterations", 1, *FAST)
    assert done.returncode == 5
    assert (
        f"is the case directory; results would be mixed with its files: choose another --output, such as {case}/"
        in (done.stderr)
    )
    assert files(case) == before


def test_overwriting_removes_a_policy_stored_at_another_path(case, tmp_path):
    out, original = tmp_path / "out", (case / "config.json").read_text()
    change(case / "config.json", policy={"path": "./stored/cuts"})
    assert cobre("run", case, "-o", out, "--iterations", 1, *FAST).returncode == 0
    assert "stored/cuts/policy.bin" in files(out)
    (case / "config.json").write_text(original)
    assert cobre("run", case, "-o", out, "--iterations", 1, "--overwrite", *FAST).returncode == 0
    assert {name for name in files(out) if name.endswith("policy.bin")} == {"policy/policy.bin"}


def test_earlier_run_is_replaced_only_with_overwrite_flag(case, tmp_path):
    out = tmp_path / "out"
    assert cobre("run", case, "-o", out, "--iterations", 2, *FAST).returncode == 0
    before = {name: (out / name).read_bytes() for name in files(out)}
    done = cobre("run", case, "-o", out, "--iterations", 3, *FAST)
    assert done.returncode == 5
    found = f"a run of {case} (2 iterations, finished: iteration limit of 2 reached, "
    for word in (found, "--resume", "--overwrite", "another --output"):
        assert word in done.stderr
    assert {name: (out / name).read_bytes() for name in files(out)} == before
    for option in ("--resume", "--auto-resume"):
        done = cobre("run", case, "-o", out, option, "--overwrite", *FAST)
        assert done.returncode == 2 and f"{option} and --overwrite exclude each other" in done.stderr
    with pytest.raises(package.errors.OutputError, match="overwrite=True"):
        package.run.run(
            case, out, config_overrides={"training.stopping_rules": [{"type": "iteration_limit", "limit": 1}]}
        )
    assert {name: (out / name).read_bytes() for name in files(out)} == before
    assert cobre("run", case, "-o", out, "--iterations", 3, "--resume", *FAST).returncode == 0
    assert cobre("run", case, "-o", out, "--iterations", 1, "--overwrite", *FAST).returncode == 0
    assert json.loads((out / "summary.json").read_text())["iterations"] == 1


def test_refused_run_leaves_the_directory_reusable(case, tmp_path):
    change(case / "config.json", no_such_section={})
    assert cobre("run", case, "-o", tmp_path / "out", *FAST).returncode == 3
    shutil.copy(QUICK_CASE / "config.json", case / "config.json")
    assert cobre("run", case, "-o", tmp_path / "out", "--iterations", 1, *FAST).returncode == 0


def test_partial_files_of_killed_runs_are_removed_by_the_next_run(case, tmp_path):
    out = tmp_path / "out"
    (out / "simulation" / ".scratch.01234567.partial").mkdir(parents=True)
    (out / "simulation" / ".scratch.01234567.partial" / "hydros.parquet").write_text("half")
    (out / "checkpoints").mkdir()
    (out / "checkpoints" / ".iteration-000010.ckpt.89abcdef.partial").write_text("half")
    assert cobre("run", case, "-o", out, "--iterations", 1, *FAST).returncode == 0
    assert not [name for name in files(out) if "partial" in name]


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        ("events.jsonl", False),
        ("summary.json", False),
        ("study.json", False),
        ("run.lock", True),
        ("training", False),
        ("simulation", False),
        ("checkpoints", False),
        ("policy", True),
    ],
)
def test_links_in_an_untrusted_case_are_not_followed(case, tmp_path, name, is_refused):
    """Existing files are replaced or refused by name; targets of links stay unchanged."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    (case / "output").mkdir()
    is_folder = name in ("training", "simulation", "checkpoints", "policy")
    (case / "output" / name).symlink_to(victim if is_folder else victim / "precious")
    done = cobre("run", case, "--iterations", 1, *FAST)
    assert (done.returncode, name in done.stderr and "symbolic link" in done.stderr) == (
        (5, True) if is_refused else (0, False)
    ), done.stderr
    assert files(victim) == {"precious"} and (victim / "precious").read_text() == "mine"


def test_symlinked_output_directory_is_rejected(case, tmp_path):
    (tmp_path / "victim").mkdir()
    (case / "output").symlink_to(tmp_path / "victim")
    done = cobre("run", case, "--iterations", 1, *FAST)
    assert done.returncode == 2 and "symbolic link to" in done.stderr and "--output" in done.stderr
    assert files(tmp_path / "victim") == set()
    named = cobre("run", case, "-o", case / "output", "--iterations", 1, *FAST)
    assert named.returncode == 0, "who names a link means where it leads"


@pytest.mark.parametrize("name", ["run.lock", "events.jsonl"])
def test_named_pipe_in_output_does_not_block(case, tmp_path, name):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)
    done = cobre("run", case, "-o", tmp_path / "out", "--iterations", 1, *FAST)
    assert done.returncode == (5 if name == "run.lock" else 0), done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="making a directory immutable needs root")
def test_directory_that_becomes_unwritable_is_reported(case, tmp_path):
    """The message is about the first cause, not about the lock, which cannot be removed either."""
    out = tmp_path / "out"
    study = start_study(case, out, "--workers", "2", *ENDLESS, "--checkpoint-every", "5")
    wait_for_checkpoint(out, study)
    folders = [out, out / "checkpoints"]
    try:
        if subprocess.run(["chattr", "+i", *folders], check=False, capture_output=True).returncode:
            pytest.skip("this file system knows no immutable directories")
        code, _, words = end_of(study)
    finally:
        subprocess.run(["chattr", "-i", *folders], check=False, capture_output=True)
        end_started()
    assert code == 5, words
    assert "checkpoints/" in words and "it is not writable" in words
    assert "Traceback" not in words and "run.lock" not in words


TITLE = "Norte\x1b]0;owned\x07"


def test_case_names_are_escaped_on_terminal(case, tmp_path):
    path = case / "system" / "buses.json"
    content = json.loads(path.read_text())
    content["buses"][0]["name"] = TITLE
    content["buses"][0][TITLE] = 1
    path.write_text(json.dumps(content))
    for words in (("validate", case), ("run", case, "-o", tmp_path / "out", *FAST)):
        done = cobre(*words)
        assert done.returncode == 3
        assert "\x1b" not in done.stdout + done.stderr and "\\x1b]0;owned\\x07" in done.stdout + done.stderr


@pytest.mark.parametrize("digits", [400, 5000, 100_000])
def test_oversized_number_is_a_field_error(case, digits):
    config = json.loads((case / "config.json").read_text())
    config["training"]["tree_seed"] = 123456789
    text = json.dumps(config).replace("123456789", "9" * digits)
    (case / "config.json").write_text(text)
    done = cobre("validate", case)
    assert done.returncode == 3 and "tree_seed" in done.stdout and len(done.stdout) < 2000
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("rules", [[{"type": "no_such_rule"}], [{"type": "iteration_limit", "limit": -1}], []])
def test_stopping_rules_are_validated_even_if_overridden(case, tmp_path, rules):
    config = json.loads((case / "config.json").read_text())
    config["training"]["stopping_rules"] = rules
    (case / "config.json").write_text(json.dumps(config))
    done = cobre("run", case, "-o", tmp_path / "out", "--iterations", 2, *FAST)
    assert done.returncode == 3 and "stopping_rules" in done.stderr


@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize("place", ["policy", "manifest", "summary", "events"])
def test_paths_in_files_stay_inside_output_directory(case, tmp_path, command, place):
    out, secret = tmp_path / "out", tmp_path / "secret"
    assert cobre("run", case, "-o", out, "--iterations", 1, *FAST).returncode == 0
    secret.mkdir()
    if place == "policy":
        study = json.loads((out / "study.json").read_text())
        study["config"]["policy"]["path"] = str(secret)
        (out / "study.json").write_text(json.dumps(study))
        (secret / "policy.bin").symlink_to("/dev/zero")
    elif place == "manifest":
        manifest = json.loads((out / "simulation/manifest.json").read_text())
        manifest["tables"]["hydros"]["file"] = "../../../../../../../../dev/zero"
        (out / "simulation/manifest.json").write_text(json.dumps(manifest))
    else:
        path = out / {"summary": "summary.json", "events": "events.jsonl"}[place]
        path.unlink()
        path.symlink_to("/dev/zero")
    words = (out, out) if command == "compare" else (out, "-o", tmp_path / "report.html")
    done = cobre(command, *words)
    assert "Traceback" not in done.stderr
    damaged = ("policy", "manifest", "summary") if command == "compare" else ("manifest", "summary")
    assert done.returncode == (8 if place in damaged else 0), done.stderr
