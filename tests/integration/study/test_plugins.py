"""Plug-ins from the how-to pages: on workers, resumed, recorded, chosen by name; and invalid ones."""

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cobre
from cobre.errors import PolicyIncompatibleError
from cobre.study.training.checkpoints import CheckpointError

ROOT = Path(__file__).resolve().parents[3]
CASE = ROOT / "examples" / "two_reservoirs"
PAGES = ("risk-measure", "stopping-rule", "sampler", "cut-selection")
FILE = re.compile(r"^```python file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\w+ = \"\w+:\w+\")$", re.MULTILINE)
ITERATIONS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Install the modules of the pages as a distribution with entry points; return its folder."""
    target = tmp_path_factory.mktemp("plugins")
    entries = []
    for page in PAGES:
        text = (ROOT / "docs" / "how-to" / f"write-a-{page}.md").read_text()
        for name, code in FILE.findall(text):
            (target / name).write_text(code)
        entries += ENTRY.findall(text)
    info = target / "pages-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pages\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cobre.plugins]\n" + "\n".join(entries).replace('"', "") + "\n")
    return target


@pytest.fixture
def plugins(folder, monkeypatch):
    """Return one plug-in of each kind, as arguments of `cobre.train`."""
    monkeypatch.syspath_prepend(str(folder))
    made = {
        "risk_measure": importlib.import_module("entropic").Entropic(2.0),
        "stopping_rules": [importlib.import_module("first_month").FirstMonthIsStable(1e-12, iterations=ITERATIONS - 1)],
        "cut_selection": importlib.import_module("recent_best").RecentBest(every=2),
        "sampler": importlib.import_module("dry_years").DryYearsFirst(until=2),
    }
    yield made
    for name in ("entropic", "first_month", "recent_best", "dry_years"):
        del sys.modules[name]


def train(plugins, **options):
    return cobre.train(CASE, **({"iterations": ITERATIONS} | options), **plugins)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_plugins_on_workers_have_bits_of_one_process(plugins, backend):
    alone = train(plugins)
    shared = train(plugins, num_workers=2, backend=backend)
    assert shared.digest == alone.digest != cobre.train(CASE, iterations=ITERATIONS).digest
    assert [record.first_stage_end for record in shared.history] == [record.first_stage_end for record in alone.history]


def test_plugin_class_of_script_reaches_workers(plugins):
    """Workers cannot import it: it is sent by value."""

    class ScriptRiskMeasure(cobre.RiskMeasure):
        def weights(self, costs):
            is_worst = np.arange(costs.shape[1]) == costs.argmax(axis=1)[:, None]
            return is_worst.astype(float)

    found = [
        cobre.train(CASE, iterations=2, risk_measure=ScriptRiskMeasure(), num_workers=count) for count in (None, 2)
    ]
    assert found[0].digest == found[1].digest
    assert found[0].lower_bound > cobre.train(CASE, iterations=2).lower_bound


@pytest.mark.parametrize("workers", [None, 2])
def test_resumed_run_has_the_bits_of_an_uninterrupted_one(plugins, tmp_path, workers):
    whole = train(plugins)
    train(plugins, iterations=3, checkpoints=tmp_path, num_workers=workers)
    resumed = train(plugins, checkpoints=tmp_path, resume=True, num_workers=workers)
    assert resumed.digest == whole.digest
    assert resumed.stop_reason == whole.stop_reason
    ends = [record.first_stage_end for record in whole.history]
    assert [record.first_stage_end for record in resumed.history] == ends


@pytest.mark.parametrize("kind", ["risk_measure", "cut_selection", "sampler"])
def test_checkpoint_of_another_plugin_is_rejected(plugins, tmp_path, kind):
    train(plugins, iterations=2, checkpoints=tmp_path)
    with pytest.raises(CheckpointError, match="content of the case"):
        train(plugins | {kind: None}, checkpoints=tmp_path, resume=True)
    field, value = {"risk_measure": ("aversion", 3.0), "cut_selection": ("young", 9), "sampler": ("until", 1)}[kind]
    other = dataclasses.replace(plugins[kind], **{field: value})
    with pytest.raises(CheckpointError, match="content of the case"):
        train(plugins | {kind: other}, checkpoints=tmp_path, resume=True)


def test_policy_of_another_risk_measure_is_rejected(plugins):
    measure = plugins["risk_measure"]
    policy = cobre.train(CASE, iterations=2, risk_measure=measure).policy
    assert policy.risk_measure == "Entropic(aversion=2.0)"
    again = cobre.train(CASE, iterations=2, risk_measure=measure, warm_start=policy)
    assert again.lower_bound >= policy.final_lower_bound
    with pytest.raises(PolicyIncompatibleError, match=r"under the risk measure Entropic\(aversion=2.0\)"):
        cobre.train(CASE, iterations=2, warm_start=policy)
    with pytest.raises(PolicyIncompatibleError, match=r"the study has Entropic\(aversion=2.0\)"):
        cobre.train(CASE, iterations=2, risk_measure=measure, warm_start=cobre.train(CASE, iterations=1).policy)


def test_simulation_uses_sampler_plugin(plugins):
    policy = cobre.train(CASE, iterations=3).policy
    usual = cobre.simulate(CASE, policy, scenarios=40)
    dry = [cobre.simulate(CASE, policy, scenarios=40, sampler=plugins["sampler"], num_workers=n) for n in (None, 2)]
    assert dry[0].digest == dry[1].digest
    assert dry[0].mean_cost > usual.mean_cost
    assert dry[0].controlled_mean_cost is None


def test_unrepresentative_paths_give_no_policy_cost(plugins):
    assert cobre.train(CASE, iterations=2).policy_cost is not None
    assert cobre.train(CASE, iterations=2, sampler=plugins["sampler"]).policy_cost is None


def test_study_stores_the_same_files_as_a_run(plugins, tmp_path):
    study = cobre.Study(
        CASE, tmp_path / "out", config_overrides={"training.stopping_rules": limit(3)}, threads=1, **plugins
    )
    policy = study.train()
    assert policy.risk_measure == "Entropic(aversion=2.0)"
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["digest"] == train(plugins, iterations=3).digest
    assert json.loads((tmp_path / "out" / "study.json").read_text())["is_risk_averse"] is True


def limit(iterations):
    return [{"type": "iteration_limit", "limit": iterations}]


def command(folder, *words):
    environ = os.environ | {"PYTHONPATH": str(folder)}
    arguments = [sys.executable, "-m", "cobre.cli", *map(str, words)]
    return subprocess.run(arguments, capture_output=True, text=True, env=environ, check=False)


@pytest.mark.parametrize("workers", [1, 2])
def test_installed_plugins_are_chosen_by_name(folder, plugins, tmp_path, workers):
    chosen = {
        "risk_measure": {"name": "entropic", "settings": {"aversion": 2.0}},
        "cut_selection": {"name": "recent_best", "settings": {"every": 2}},
        "sampler": {"name": "dry_years", "settings": {"until": 2}},
        "stopping_rules": [{"name": "first_month", "settings": {"tolerance_hm3": 1e-12, "iterations": 4}}],
    }
    setting = f"training.plugins={json.dumps(chosen)}"
    options = ("--output", tmp_path / "out", "--iterations", ITERATIONS, "--no-simulation", "--json", "--quiet")
    done = command(folder, "run", CASE, *options, "--set", setting, "--workers", workers)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == train(plugins).digest
    assert json.loads((tmp_path / "out" / "study.json").read_text())["config"]["training"]["plugins"] == chosen


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"name": "nothing"}, "no plug-in 'nothing' is installed; installed plug-ins: dry_years, entropic"),
        ({"name": "entropic"}, "plug-in 'entropic' (entropic:Entropic) cannot be created"),
        (
            {"name": "recent_best"},
            "expected a subclass of cobre.RiskMeasure, got an object of type RecentBest",
        ),
        ({"name": 3}, "training.plugins.risk_measure.name: is 3"),
    ],
    ids=["unknown", "arguments", "kind", "type"],
)
def test_unknown_or_mismatched_plugin_names_raise(folder, tmp_path, chosen, words):
    setting = f"training.plugins.risk_measure={json.dumps(chosen)}"
    done = command(folder, "run", CASE, "--output", tmp_path / "out", "--iterations", 1, "--set", setting)
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())


# Wrong objects.


class Weights(cobre.RiskMeasure):
    def __init__(self, kind):
        self.kind = kind

    def weights(self, costs):
        share = np.full_like(costs, 1.0 / costs.shape[1])
        return {
            "sum": 0.9 * share,
            "shape": share[:, :-1],
            "nan": share * np.nan,
            "negative": np.concatenate([-share[:, :1], share[:, 1:-1], 3.0 * share[:, :1]], axis=1),
            "text": "equal",
        }[self.kind]


class WrongSampler:
    is_in_sample = True

    def __init__(self, kind):
        self.kind = kind

    def opening_indices(self, iteration, scenarios, stage):
        count = len(scenarios)
        return {
            "shape": np.zeros(count + 1, int),
            "beyond": np.full(count, 10_000),
            "float": np.zeros(count),
        }[self.kind]

    def sample(self, iteration, scenarios, stage):
        raise NotImplementedError

    def for_scenarios(self, total):
        return self


class WrongSelection(cobre.CutSelection):
    def __init__(self, kind):
        self.kind = kind

    def is_due(self, iteration):
        return True

    def choose(self, cuts, states, created, iteration, active):
        return {"shape": active[:-1], "values": active * 2.0}[self.kind]


class WrongStoppingRule(cobre.StoppingRule):
    def reason_to_stop(self, history, simulated=None, bound=None):
        return len(history) > 1


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        ({"risk_measure": Weights("sum")}, r"Weights.weights returned weights whose sum is 0\.9, not 1"),
        ({"risk_measure": Weights("shape")}, r"Weights.weights returned an array of shape \(\d+, \d+\), expected"),
        ({"risk_measure": Weights("nan")}, "Weights.weights returned a weight that is not finite"),
        ({"risk_measure": Weights("negative")}, "Weights.weights returned a negative weight"),
        ({"risk_measure": Weights("text")}, "Weights.weights returned an object of type str, not an array"),
        ({"sampler": WrongSampler("shape")}, "WrongSampler.opening_indices returned an array of shape"),
        (
            {"sampler": WrongSampler("beyond")},
            "WrongSampler.opening_indices returned an opening that stage index 0 does not have",
        ),
        (
            {"sampler": WrongSampler("float")},
            "WrongSampler.opening_indices returned numbers of type float64, not integers",
        ),
        ({"cut_selection": WrongSelection("shape")}, "WrongSelection.choose returned an array of shape"),
        ({"cut_selection": WrongSelection("values")}, "WrongSelection.choose returned values other than 0 and 1"),
        (
            {"stopping_rules": [WrongStoppingRule()]},
            "WrongStoppingRule.reason_to_stop returned False; expected a reason as a text, or None",
        ),
    ],
    ids=lambda value: (
        "" if isinstance(value, str) else "-".join(f"{k}-{getattr(v, 'kind', '')}" for k, v in value.items())
    ),
)
@pytest.mark.parametrize("workers", [None, 2])
def test_invalid_plugin_results_raise(plugin, words, workers):
    with pytest.raises(cobre.PluginError, match=words):
        cobre.train(CASE, iterations=2, num_workers=workers, **plugin)


class ChangesCosts(cobre.RiskMeasure):
    """A risk measure that changes its input in place."""

    def weights(self, costs):
        costs -= costs.max(axis=1, keepdims=True)
        return np.full_like(costs, 1.0 / costs.shape[1])


class ChangesFlags(WrongSelection):
    def choose(self, cuts, states, created, iteration, active):
        active[:] = 0
        return active


@pytest.mark.parametrize(
    "plugin", [{"risk_measure": ChangesCosts()}, {"cut_selection": ChangesFlags("")}], ids=" ".join
)
def test_plugins_receive_read_only_arrays(plugin):
    """Modified costs would give cuts with a lower bound of 0."""
    with pytest.raises(ValueError, match="read-only"):
        cobre.train(CASE, iterations=2, **plugin)


class NoPluginMethods:
    """A class without the methods of any plug-in."""


class CustomStopKind(cobre.StoppingRule):
    kind = "mine"

    def reason_to_stop(self, history, simulated=None, bound=None):
        return "enough"


class WithGenerator(Weights):
    def __init__(self):
        self.kind = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (
            {"risk_measure": NoPluginMethods()},
            "expected a subclass of cobre.RiskMeasure, got .* NoPluginMethods",
        ),
        ({"risk_measure": Weights}, r"risk_measure: expected an object, got the class Weights: write Weights\(\)"),
        ({"risk_measure": WithGenerator()}, "risk_measure: the field `kind` of WithGenerator is .* Generator"),
        ({"stopping_rules": [NoPluginMethods()]}, "stopping_rules: expected a subclass of cobre.StoppingRule"),
        (
            {"stopping_rules": [CustomStopKind()]},
            "`kind` of CustomStopKind is 'mine'; expected a StopKind",
        ),
        ({"stopping_rules": 3}, "stopping_rules: expected a list of StoppingRule, got an object of type int"),
        ({"cut_selection": NoPluginMethods()}, "cut_selection: expected a subclass of cobre.CutSelection"),
        ({"sampler": NoPluginMethods()}, "sampler: an object of type NoPluginMethods has no sample"),
    ],
)
def test_objects_without_plugin_interface_raise_early(plugin, words):
    with pytest.raises(TypeError, match=words):
        cobre.train("no such case", **plugin)


def test_simulation_rule_raises_under_risk_measure(plugins):
    rules = [*limit(2), {"type": "simulation", "replications": 4, "period": 1}]
    with pytest.raises(cobre.PluginError, match="compares means"):
        cobre.train(CASE, config_overrides={"training.stopping_rules": rules}, risk_measure=plugins["risk_measure"])
