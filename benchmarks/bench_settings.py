"""Curves for the page "How to choose": `python benchmarks/bench_settings.py` measures, `--draw` only draws again.

Openings, forward passes, risk aversion, cut selection and stopping rules on the three examples, with several seeds.
A seed draws other openings, so it is another problem: bounds are compared with the best bound of their own seed, and
policies by one set of scenarios that no training has seen.

Writes benchmarks/results/choose.json, choose.md and the figures in docs/_static/choose.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

import cobre
from cobre.core.temporal import CvarParameters

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "choose.json"
TABLES = RESULTS.with_suffix(".md")
FIGURES = ROOT / "docs" / "_static" / "choose"
SEEDS = {"two_reservoirs": (1, 2, 3, 4, 5), "four_regions": (1, 2, 3, 4), "large": (1, 2, 3)}
RISK_SEEDS = {"two_reservoirs": (1, 2, 3, 4, 5), "four_regions": (1, 2)}
# Fresh scenarios, the same for every policy of a case.
SCENARIOS = {"two_reservoirs": 2000, "four_regions": 500, "large": 200}
TAIL = 0.05  # of the scenarios, the most expensive
# Backward LPs of one training: each setting of forward passes gets the same number.
WORK = {"two_reservoirs": 60 * 4, "four_regions": 40 * 12, "large": 20 * 10}
PASSES = {"two_reservoirs": (1, 4, 16), "four_regions": (1, 4, 12, 48), "large": (1, 10, 40)}
OPENINGS = {"two_reservoirs": (2, 5, 10, 20, 50), "four_regions": (5, 10, 20, 50), "large": (5, 20, 50)}
ITERATIONS = {"two_reservoirs": 60, "four_regions": 40, "large": 20}  # those of the examples
LAMBDAS = {"two_reservoirs": (0.0, 0.1, 0.25, 0.5, 0.75), "four_regions": (0.0, 0.25, 0.75)}
ALPHA = 0.1
SELECTIONS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "level1": {"method": "level1"},
    "domination": {"method": "domination", "domination_tolerance": 0.0},
    "dynamic": {"method": "dynamic"},
}
RULES: dict[str, list[dict[str, Any]]] = {
    "gap at most 1 %": [{"type": "gap", "relative_tolerance": 1.0}],
    "gap at most 0.2 %": [{"type": "gap", "relative_tolerance": 0.2}],
    "bound stalls: 0.1 % in 10": [{"type": "bound_stalling", "iterations": 10, "tolerance": 0.001}],
    "bound stalls: 0.01 % in 20": [{"type": "bound_stalling", "iterations": 20, "tolerance": 0.0001}],
}
# Iterations with a stopping rule.
LIMIT = {"two_reservoirs": 200}
CASES = {
    "openings": [*OPENINGS],
    "passes": [*PASSES],
    "risk": [*RISK_SEEDS],
    "selection": ["two_reservoirs"],
    "stopping": [*LIMIT],
}


def cpu_s() -> float:
    """Return the CPU seconds of this process."""
    times = os.times()
    return times.user + times.system


def case_of(name: str, seed: int, **changes: Any) -> Any:
    """Return an example with other openings, and fresh scenarios for simulations."""
    fresh = {"seed": 7, **{kind: {"scheme": "out_of_sample"} for kind in ("inflow", "load", "ncs")}}
    settings = {
        "config.training.tree_seed": seed,
        "config.simulation.scenario_source": fresh,
        "config.simulation.selection": {"method": "sampled", "num_scenarios": SCENARIOS[name]},
        **changes,
    }
    return cobre.changed(cobre.load_case(ROOT / "examples" / name), settings)


def with_stages(case: Any, **fields: Any) -> Any:
    """Return a case with some fields of every stage changed."""
    return cobre.changed(case, {"horizon.stages": tuple(replace(stage, **fields) for stage in case.horizon.stages)})


def train(case: Any, iterations: int) -> tuple[Any, float]:
    """Return the result of a training on one thread, and its CPU seconds."""
    before = cpu_s()
    return cobre.train(case, iterations=iterations, threads=1, progress=False), cpu_s() - before


def simulate(case: Any, policy: Any) -> dict[str, float]:
    """Return what a policy costs in fresh scenarios, in $: mean, mean of the worst, and load that is shed, in MWh."""
    result = cobre.simulate(case, policy, threads=1)
    costs = np.sort(np.array(result.scenario_costs))
    deficit = float(np.sum(result.tables["buses"]["deficit_mwh"].to_numpy())) / len(costs)
    worst = costs[-max(1, round(TAIL * len(costs))) :]
    return {"mean": float(costs.mean()), "tail": float(worst.mean()), "deficit_mwh": deficit}


def measure_passes(name: str) -> Iterable[dict[str, Any]]:
    """Yield trainings with few and many forward passes, and equally many backward LPs."""
    for seed in SEEDS[name]:
        for passes in PASSES[name]:
            case = case_of(name, seed, **{"config.training.selection": sampled(passes)})
            result, seconds = train(case, WORK[name] // passes)
            solves = np.cumsum([record.solves for record in result.history]).tolist()
            lower = [record.lower_bound for record in result.history]
            yield {"seed": seed, "passes": passes, "solves": solves, "lower_bound": lower, "cpu_s": seconds}


def measure_openings(name: str) -> Iterable[dict[str, Any]]:
    """Yield trainings with few and many openings; iterations and forward passes are those of the example."""
    for seed in SEEDS[name]:
        for openings in OPENINGS[name]:
            case = with_stages(case_of(name, seed), num_openings=openings)
            result, seconds = train(case, ITERATIONS[name])
            yield {"seed": seed, "openings": openings, "cpu_s": seconds, "lower_bound": result.lower_bound} | {
                "policy_cost": result.policy_cost,
                "fresh": simulate(case, result.policy),
            }


def measure_risk(name: str) -> Iterable[dict[str, Any]]:
    """Yield trainings with more and more weight on the worst tenth of the openings."""
    for seed in RISK_SEEDS[name]:
        for share in LAMBDAS[name]:
            case = with_stages(case_of(name, seed), risk=CvarParameters(ALPHA, share))
            result, seconds = train(case, ITERATIONS[name])
            yield {"seed": seed, "lambda": share, "cpu_s": seconds, "lower_bound": result.lower_bound} | {
                "fresh": simulate(case, result.policy)
            }


def measure_selection(name: str) -> Iterable[dict[str, Any]]:
    """Yield trainings with each cut selection."""
    for seed in SEEDS[name]:
        for label, selection in SELECTIONS.items():
            case = case_of(name, seed, **{"config.training.cut_selection": {"selection": selection}})
            result, seconds = train(case, ITERATIONS[name])
            last = result.history[-1]
            yield {"seed": seed, "selection": label, "cpu_s": seconds, "lower_bound": result.lower_bound} | {
                "active": last.cuts_active / (last.cuts * (len(case.horizon.stages) - 1)),
                "pivots": sum(record.simplex_iterations for record in result.history),
                "fresh": simulate(case, result.policy),
            }


def measure_stopping(name: str) -> Iterable[dict[str, Any]]:
    """Yield trainings ended by each stopping rule, and one that goes on to the limit."""
    for seed in SEEDS[name]:
        for label, rules in {**RULES, "limit": []}.items():
            limit = {"type": "iteration_limit", "limit": LIMIT[name]}
            case = case_of(name, seed, **{"config.training.stopping_rules": [limit, *rules]})
            before = cpu_s()
            result = cobre.train(case, threads=1, progress=False)
            yield {"seed": seed, "rule": label, "cpu_s": cpu_s() - before, "lower_bound": result.lower_bound} | {
                "iterations": len(result.history),
                "stop_kind": str(result.stop_kind.value),
                "fresh": simulate(case, result.policy),
            }


def sampled(passes: int) -> dict[str, Any]:
    """Return the setting for a number of forward passes."""
    return {"method": "sampled", "forward_passes": passes}


EXPERIMENTS = {
    "passes": measure_passes,
    "openings": measure_openings,
    "risk": measure_risk,
    "selection": measure_selection,
    "stopping": measure_stopping,
}


def measure(names: Sequence[str], cases: Sequence[str]) -> dict[str, Any]:
    """Run the named experiments on some examples; results by experiment and case, with those of earlier calls."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for experiment in names:
        for case in [case for case in CASES[experiment] if case in cases]:
            print(f"{experiment}: {case}", flush=True)
            results.setdefault(experiment, {})[case] = list(EXPERIMENTS[experiment](case))
            RESULTS.write_text(json.dumps(results, separators=(",", ":")) + "\n")
    return results


COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#8e6c8a", "#edae49")


def spread(values: Iterable[float], digits: int = 1, unit: float = 1.0) -> str:
    """Return the mean over seeds, with the smallest and the largest."""
    numbers = [value / unit for value in values]
    low, mean, high = (f"{number:,.{digits}f}" for number in (min(numbers), statistics.fmean(numbers), max(numbers)))
    return f"{mean} ({low} to {high})"


def group_by(rows: Sequence[dict[str, Any]], key: str) -> dict[Any, list[dict[str, Any]]]:
    """Return rows by the value of one of their fields, in the order of the rows."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


# A cell of a table: from the rows of a setting, and all rows of the case.
Cell = Callable[[Sequence[dict[str, Any]], Sequence[dict[str, Any]]], str]
BOUND: Cell = lambda rows, _: spread((last_bound(row) for row in rows), 0, 1e6)  # noqa: E731
MEAN: Cell = lambda rows, _: spread((row["fresh"]["mean"] for row in rows), 0, 1e6)  # noqa: E731
TAIL_MEAN: Cell = lambda rows, _: spread((row["fresh"]["tail"] for row in rows), 0, 1e6)  # noqa: E731
SHED: Cell = lambda rows, _: spread((row["fresh"]["deficit_mwh"] for row in rows), 0)  # noqa: E731
CPU: Cell = lambda rows, _: spread(row["cpu_s"] for row in rows)  # noqa: E731
MISSING: Cell = lambda rows, runs: spread((missing(row, runs) for row in rows), 2)  # noqa: E731
LOST: Cell = lambda rows, runs: spread((lost(row, runs) for row in rows), 3)  # noqa: E731
STEPS: Cell = lambda rows, _: str(len(rows[0]["lower_bound"]))  # noqa: E731
ITERATIONS_DONE: Cell = lambda rows, _: spread((row["iterations"] for row in rows), 0)  # noqa: E731
ACTIVE: Cell = lambda rows, _: f"{100 * statistics.fmean(row['active'] for row in rows):.0f} %"  # noqa: E731
PIVOTS: Cell = lambda rows, _: spread((row["pivots"] for row in rows), 0, 1e3)  # noqa: E731

BELOW_BEST = "bound below the best, %"
COLUMNS: dict[str, tuple[str, str, dict[str, Cell]]] = {  # by experiment: heading, field of the setting, cells
    "openings": (
        "Openings",
        "openings",
        {"lower bound": BOUND, "fresh mean": MEAN, "fresh worst 5 %": TAIL_MEAN, "CPU s": CPU},
    ),
    "passes": (
        "Forward passes",
        "passes",
        {"iterations": STEPS, BELOW_BEST: MISSING, "CPU s": CPU},
    ),
    "risk": (
        "Risk aversion",
        "lambda",
        {"fresh mean": MEAN, "fresh worst 5 %": TAIL_MEAN, "load shed, MWh": SHED},
    ),
    "selection": (
        "Cut selection",
        "selection",
        {"active cuts": ACTIVE, "bound below that of all cuts, %": LOST, "1000 pivots": PIVOTS, "CPU s": CPU},
    ),
    "stopping": (
        "Stopping",
        "rule",
        {"iterations": ITERATIONS_DONE, BELOW_BEST: MISSING, "fresh mean": MEAN, "CPU s": CPU},
    ),
}


def table(experiment: str, cases: dict[str, Any]) -> str:
    """Return the Markdown table of an experiment, below a heading."""
    heading, key, cells = COLUMNS[experiment]
    lines = [["case", key, *cells], ["---"] * (2 + len(cells))]
    for case, runs in cases.items():
        for setting, rows in group_by(runs, key).items():
            lines.append([case, str(setting), *(cell(rows, runs) for cell in cells.values())])
    return "\n".join([f"## {heading}", "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def last_bound(row: dict[str, Any]) -> float:
    """Return the final lower bound of a training."""
    bound = row["lower_bound"]
    return float(bound[-1] if isinstance(bound, list) else bound)


def missing(row: dict[str, Any], runs: Sequence[dict[str, Any]]) -> float:
    """Return by how many percent a bound is below the best one of the same seed."""
    best = max(last_bound(other) for other in runs if other["seed"] == row["seed"])
    return 100.0 * (best - last_bound(row)) / best


def lost(row: dict[str, Any], runs: Sequence[dict[str, Any]]) -> float:
    """Return by how many percent a bound is below that of the same seed without cut selection."""
    [plain] = [last_bound(other) for other in runs if other["seed"] == row["seed"] and other["selection"] == "none"]
    return 100.0 * (plain - last_bound(row)) / plain


def draw(results: dict[str, Any]) -> None:
    """Draw the figures of the page, as SVG."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    style = {
        "svg.hashsalt": "choose",
        "svg.fonttype": "none",
        "font.size": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(style):
        draw_cases("openings", results["openings"], draw_openings)
        draw_cases("passes", results["passes"], draw_passes)
        draw_cases("risk", results["risk"], draw_risk)


def draw_cases(name: str, results: dict[str, Any], draw_one: Any) -> None:
    """Draw one chart for each case, side by side."""
    cases = [case for case in SEEDS if case in results]
    figure, axes = plt.subplots(1, len(cases), figsize=(3.2 * len(cases), 2.6), squeeze=False)
    for chart, case in zip(axes[0], cases, strict=True):
        draw_one(chart, results[case])
        chart.set_title(case, loc="left", fontweight="bold")
        chart.legend(frameon=False, fontsize=6)
    figure.tight_layout()
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_openings(chart: Any, runs: Sequence[dict[str, Any]]) -> None:
    """Draw lower bound and cost in fresh scenarios over the number of openings: a dot for each seed, and the mean."""
    groups = group_by(runs, "openings")
    for colour, label, value in (
        (COLOURS[0], "lower bound", lambda row: row["lower_bound"]),
        (COLOURS[1], "cost in fresh scenarios", lambda row: row["fresh"]["mean"]),
    ):
        points = [(openings, value(row) / 1e6) for openings, rows in groups.items() for row in rows]
        chart.plot(*zip(*points, strict=True), ".", color=colour, alpha=0.5, markersize=4)
        means = [statistics.fmean(value(row) / 1e6 for row in rows) for rows in groups.values()]
        chart.plot([*groups], means, color=colour, label=label)
    chart.set_xscale("log")
    chart.set_xticks([*groups], [str(number) for number in groups])
    chart.minorticks_off()
    chart.set_xlabel("openings")
    chart.set_ylabel("million $")


def draw_passes(chart: Any, runs: Sequence[dict[str, Any]]) -> None:
    """Draw by how much the lower bound is below the best one of its seed, over the LPs solved: a line for each seed."""
    for colour, (passes, rows) in zip(COLOURS, group_by(runs, "passes").items(), strict=False):
        for number, row in enumerate(rows):
            best = max(last_bound(other) for other in runs if other["seed"] == row["seed"])
            below = [100.0 * (best - bound) / best for bound in row["lower_bound"]]
            label = f"{passes} passes" if number == 0 else None
            chart.plot(row["solves"], below, color=colour, alpha=0.7, linewidth=0.9, label=label)
    chart.set_yscale("log")
    chart.set_ylim(1e-2, 100)
    chart.set_xscale("log")
    chart.set_xlabel("LPs solved")
    chart.set_ylabel("bound below the best, %")


def draw_risk(chart: Any, runs: Sequence[dict[str, Any]]) -> None:
    """Draw the mean of the worst scenarios over the mean of all: a line for each seed, a dot for each lambda."""
    for colour, (seed, rows) in zip(COLOURS, group_by(runs, "seed").items(), strict=False):
        points = [(row["fresh"]["mean"] / 1e6, row["fresh"]["tail"] / 1e6) for row in rows]
        chart.plot(*zip(*points, strict=True), ".-", color=colour, markersize=4, linewidth=0.9, label=f"seed {seed}")
        chart.annotate("0", points[0], fontsize=7, xytext=(2, 2), textcoords="offset points")
        chart.annotate(f"{rows[-1]['lambda']:g}", points[-1], fontsize=7, xytext=(2, 2), textcoords="offset points")
    chart.set_xlabel("mean cost in fresh scenarios, million $")
    chart.set_ylabel("mean of the worst 5 %")


HEADER = """# How to choose: what was measured

`python benchmarks/bench_settings.py` on the examples. Mean over seeds, smallest and largest in brackets; money in
millions of $. A seed draws other openings. *Fresh*: scenarios that no training has seen, the same for all policies of
a case (two_reservoirs 2000, four_regions 500, large 200). *The best* bound is that of the same seed in the same table.
CPU seconds of training on one thread, on a machine that did other work meanwhile: compare them roughly.
[How to choose](../../docs/how-to/choose-settings.md) says what follows.

"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw what was measured before")
    parser.add_argument("--only", nargs="*", choices=[*EXPERIMENTS], default=[*EXPERIMENTS])
    parser.add_argument("--cases", nargs="*", choices=[*SEEDS], default=[*SEEDS])
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if options.draw else measure(options.only, options.cases)
    TABLES.write_text(HEADER + "\n".join(table(name, results[name]) for name in COLUMNS))
    draw(results)
