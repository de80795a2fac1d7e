"""Settings on the command line: checked like those of the file, and recorded."""

import json
import shutil

import pytest
from cli_runs import EXAMPLES, ONE_PROCESS, QUICK_CASE, cobre

from cobre.cli.error_reporting import ExitCode


def _overrides(output):
    return json.loads((output / "study.json").read_text())["config_overrides"]


def test_short_options_equal_config_settings(tmp_path):
    """Compare a run with options to a run of a case whose config.json has the same settings."""
    short = ("--iterations", 3, "--forward-passes", 2, "--seed", 9, "--scenarios", 5)
    done = cobre("run", QUICK_CASE, "-o", tmp_path / "short", *short, *ONE_PROCESS, "--no-report")
    assert done.returncode == 0, done.stderr
    case = shutil.copytree(QUICK_CASE, tmp_path / "case")
    config = json.loads((case / "config.json").read_text())
    config["training"]["selection"]["forward_passes"] = 2
    config["training"]["tree_seed"] = 9
    config["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": 3}]
    config.setdefault("simulation", {}).update(enabled=True, selection={"method": "sampled", "num_scenarios": 5})
    (case / "config.json").write_text(json.dumps(config))
    assert cobre("run", case, "-o", tmp_path / "file", *ONE_PROCESS, "--no-report").returncode == 0
    short, file = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("short", "file"))
    assert short["digest"] == file["digest"]
    assert short["simulation_digest"] == file["simulation_digest"]
    assert short["simulated_scenarios"] == 5


def test_set_option_is_recorded_and_equals_short_option(tmp_path):
    named = ("--set", "training.tree_seed=9", "--set", "training.selection.forward_passes=2")
    for name, options in (("set", named), ("short", ("--seed", 9, "--forward-passes", 2))):
        common = ("-o", tmp_path / name, "--iterations", 2, "--no-simulation", *ONE_PROCESS, "--no-report")
        assert cobre("run", QUICK_CASE, *options, *common).returncode == 0
    digests = {json.loads((tmp_path / name / "summary.json").read_text())["digest"] for name in ("set", "short")}
    assert len(digests) == 1
    found = _overrides(tmp_path / "set")
    assert found == _overrides(tmp_path / "short")
    assert found["training.tree_seed"] == 9
    assert found["simulation.enabled"] is False
    assert not (tmp_path / "set" / "simulation").exists()


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (["training.tree_sed=7"], ExitCode.INVALID_CASE, "--set training.tree_sed: is not a field of the format"),
        (["modeling.inflow_non_negativity.method=x"], ExitCode.INVALID_CASE, "method: is 'x' (expected none, penalty"),
        (
            ["training.selection.forward_passes=0"],
            ExitCode.INVALID_CASE,
            "--set training.selection.forward_passes: is 0",
        ),
        (
            ['training.selection={"forward_passes": 0}'],
            ExitCode.INVALID_CASE,
            "--set training.selection, training.selection.forward_passes: is 0",
        ),
        (["training.tree_seed.x=7"], ExitCode.INVALID_CASE, "--set training.tree_seed.x: `tree_seed` is not an object"),
        (
            ['training.stopping_rules=[{"type": "iteration_limit", "limit": 3}, {"type": "gap"}]'],
            ExitCode.INVALID_CASE,
            "--set training.stopping_rules: the rule `gap` has no tolerance",
        ),
        (
            ["training.selection.method=enumerated"],
            ExitCode.INVALID_CASE,
            "--set training.selection.method, training.selection.forward_passes: is not a field of the format (set",
        ),
        (
            ["training.selection.method=enumerated"],
            ExitCode.INVALID_CASE,
            'set training.selection as a whole, such as {"method": "enumerated"})',
        ),
        (["training.tree_seed"], ExitCode.USAGE, "expected NAME=VALUE, such as training.tree_seed=7"),
        (["=7"], ExitCode.USAGE, "expected NAME=VALUE"),
        (['training={"tree_seed": 7, "tree_seed": 8}'], ExitCode.USAGE, "the key 'tree_seed' twice"),
        (["training..tree_seed=7"], ExitCode.USAGE, "expected NAME=VALUE"),
        (["training.tree_seed=7", "training.tree_seed=8"], ExitCode.USAGE, "both change training.tree_seed"),
        (
            ['training.selection={"method": "enumerated"}', "training.selection.forward_passes=2"],
            ExitCode.USAGE,
            "both",
        ),
    ],
)
def test_invalid_settings_are_refused(settings, code, words, tmp_path):
    options = [word for text in settings for word in ("--set", text)]
    done = cobre("run", QUICK_CASE, "-o", tmp_path / "out", *options, *ONE_PROCESS)
    assert done.returncode == code
    assert words in " ".join(done.stderr.split())
    assert "config.json" not in done.stderr
    assert not (tmp_path / "out" / "policy").exists()


def test_error_names_short_option_as_typed(tmp_path):
    """Trees have no forward passes; the error names the option."""
    case = shutil.copytree(QUICK_CASE, tmp_path / "case")
    config = json.loads((case / "config.json").read_text())
    config["training"]["selection"] = {"method": "enumerated"}
    (case / "config.json").write_text(json.dumps(config))
    done = cobre("run", case, "-o", tmp_path / "out", "--forward-passes", 3, *ONE_PROCESS)
    assert done.returncode == ExitCode.INVALID_CASE
    assert "--forward-passes: is not a field of the format" in done.stderr


def test_mutually_exclusive_options_are_refused(tmp_path):
    done = cobre("run", QUICK_CASE, "-o", tmp_path / "out", "--scenarios", 5, "--no-simulation")
    assert done.returncode == ExitCode.USAGE
    assert "--scenarios and --no-simulation both change simulation.enabled" in " ".join(done.stderr.split())


def test_validate_and_bench_take_settings():
    done = cobre("validate", QUICK_CASE, "--set", "training.tree_seed=x")
    assert done.returncode == ExitCode.INVALID_CASE
    assert "error: --set training.tree_seed: is 'x'" in done.stdout
    options = ("--set", "training.selection.forward_passes=7", "--rounds", 2, "--paths", 1, "--json")
    measured = json.loads(cobre("bench", EXAMPLES / "two_reservoirs", *options).stdout)
    assert measured["forward_passes"] == 7


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("training.selection.f", ["training.selection.forward_passes="]),
        ("training.en", ["training.enabled="]),
        ("training.enabled=t", ["training.enabled=true"]),
        ("training.cut_selection.selection.method=dy", ["training.cut_selection.selection.method=dynamic"]),
    ],
)
def test_shell_completes_settings(begun, expected):
    words = f"cobre run case --set {begun}"
    done = cobre(_COBRE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4")
    assert done.stdout.split() == [f"plain,{text}" for text in expected]
