"""The official decks as published, trained by ours and by cobre-python for the same CPU time: lower bounds over time.

`python benchmarks/bench_official.py --cpu-minutes 40 --threads 2 --forward-passes 4` trains January 2018 (120 stages)
and December 2025 (109 stages) in turns, and writes a table, a picture and all numbers to
`benchmarks/results/production`.
The x axis is CPU time, preparation included, so that other load on the machine counts for neither. An iteration that
has begun is finished. `--side-by-side` trains both programs at once.

A second table has what `cobre bench` predicts for our mean iteration, and for 200 passes x 50 iterations on 8, 16 and
64 cores.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from collectives.environments import UnavailableError
from sddp.peer_environment import peer_environment
from sddp.studies import DECKS, GENERATED, ROOT

PROGRAM = ROOT / "benchmarks" / "sddp" / "programs" / "follow_training.py"
RESULTS = ROOT / "benchmarks" / "results" / "production"
NOT_FILLED = 41  # cobre-python and ours count the water of its filling in different ways
PREDICTED_CORES = (8, 16, 64)
OFFICIAL_PASSES, OFFICIAL_ITERATIONS = 200, 50
Iterations = list[dict[str, float]]
NOTE = """
January 2018 is in a form that both programs read alike, so its bounds can be compared. December 2025 is as published:
cobre-python charges for the minimum outflow of plants that do not exist yet, forbids plants without machines to spill,
and ignores minimum generation ([ADR 0047](../../../docs/adr/0047-official-decks-beside-cobre-python.md)). There the two
programs solve different problems, and only passes, times and memory can be compared, not bounds. Predictions are from
the first iterations, on one core; later iterations have more cuts.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train each deck with each program, then write the table and the picture."""
    options = parse(arguments)
    decks = {name: DECKS / name for name in options.decks if (DECKS / name).is_dir()}
    if missing := sorted(set(options.decks) - set(decks)):
        print(f"not in {DECKS}: {', '.join(missing)}", file=sys.stderr)
        return 1
    try:
        peer = peer_environment()
        print(f"beside {peer.ensure()}")
    except UnavailableError as error:
        print(f"cobre-python is not available: {error}", file=sys.stderr)
        return 1
    pythons = {"cobre": Path(sys.executable), "cobre-python": peer.python}
    results = {}
    for name, deck in decks.items():
        case = common_form(deck, GENERATED / f"{name}-common") if name == "pmo_2018" else deck
        results[name] = {"curves": train_all(pythons, case, options), "prediction": predict(case, options)}
        write(results, options)  # after each deck: an hour's figures outlive an interruption
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu-minutes", type=float, default=40.0, help="of each program on each deck (40)")
    parser.add_argument("--threads", type=int, default=2, help="of each program (2)")
    parser.add_argument("--forward-passes", type=int, default=4, help="of an iteration (4)")
    parser.add_argument("--side-by-side", action="store_true", help="both programs at once instead of in turns")
    parser.add_argument("--decks", nargs="+", default=["pmo_2018", "pmo_2025_12"], help="folders of the decks")
    return parser.parse_args(arguments)


def common_form(deck: Path, to: Path) -> Path:
    """Write a copy of the deck of 2018 that both programs understand alike.

    It has no minimum outflow before a plant is filled, and one plant begins filled.
    """
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(deck, to)
    system, conditions = to / "system" / "hydros.json", to / "initial_conditions.json"
    hydros, initial = json.loads(system.read_text()), json.loads(conditions.read_text())
    begins = {plant["id"]: plant["filling"]["start_stage_id"] for plant in hydros["hydros"] if plant.get("filling")}
    for plant in hydros["hydros"]:
        if plant["id"] == NOT_FILLED:
            plant.update(operational_start_date="1931-01-01", filling=None, entry_stage_id=None)
            initial["storage"].append({"hydro_id": NOT_FILLED, "value_hm3": plant["reservoir"]["min_storage_hm3"]})
    initial["filling_storage"] = [entry for entry in initial["filling_storage"] if entry["hydro_id"] != NOT_FILLED]
    initial["storage"].sort(key=lambda entry: entry["hydro_id"])
    system.write_text(json.dumps(hydros))
    conditions.write_text(json.dumps(initial))
    clear_minimum_outflows(to / "constraints" / "hydro_bounds.parquet", begins)
    return to


def clear_minimum_outflows(path: Path, begins: dict[int, int]) -> None:
    """Set minimum outflows to zero before plants are filled; add rows where there are none."""
    table = pq.read_table(path)
    rows = {(row["hydro_id"], row["stage_id"]): row for row in table.to_pylist()}
    empty = dict.fromkeys(table.schema.names)
    for plant, begin in begins.items():
        for stage in range(begin):
            row = rows.setdefault((plant, stage), {**empty, "hydro_id": plant, "stage_id": stage})
            row["min_outflow_m3s"] = 0.0
    pq.write_table(
        pa.Table.from_pylist([rows[key] for key in sorted(rows)], table.schema), path, compression="none"
    )  # cobre-python's reader does not know snappy


def train_all(pythons: dict[str, Path], case: Path, options: argparse.Namespace) -> dict[str, Iterations]:
    """Train a case with each program; return the lines that each printed."""
    with tempfile.TemporaryDirectory() as scratch:
        request = {
            "case": str(case),
            "scratch": scratch,
            "threads": options.threads,
            "forward_passes": options.forward_passes,
            "cpu_s": 60.0 * options.cpu_minutes,
        }
        waiting, curves = {}, {}
        for name, python in pythons.items():
            command = [str(python), str(PROGRAM), json.dumps(request)]
            waiting[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            if not options.side_by_side:
                curves[name] = lines_of(waiting.pop(name))
        return curves | {name: lines_of(process) for name, process in waiting.items()}


def lines_of(process: "subprocess.Popen[str]") -> Iterations:
    """Wait for a program and return its iterations."""
    told, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{process.args} failed with exit code {process.returncode}")
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def predict(case: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what `cobre bench` says of this training and of the official number of passes and iterations."""
    cobre = Path(sys.executable).parent / "cobre"

    def bench(cores: Sequence[int], passes: int, iterations: int) -> dict[str, Any]:
        rules = json.dumps([{"type": "iteration_limit", "limit": iterations}])
        settings = [f"training.selection.forward_passes={passes}", f"training.stopping_rules={rules}"]
        command = [str(cobre), "bench", str(case), "--json", "--paths", "1", "--cores", ",".join(map(str, cores))]
        command += [part for setting in settings for part in ("--set", setting)]
        told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return told

    here = bench([1], options.forward_passes, 1)
    official = bench(PREDICTED_CORES, OFFICIAL_PASSES, OFFICIAL_ITERATIONS)
    return {"iteration_cpu_s": here["estimates"][0]["iteration_s"], "official": official["estimates"]}


def write(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Write numbers, table and picture, and print the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    settings = {name: getattr(options, name) for name in ("cpu_minutes", "threads", "forward_passes", "side_by_side")}
    settings["usable_cores"] = len(os.sched_getaffinity(0))
    (RESULTS / "official.json").write_text(json.dumps(settings | {"decks": results}, indent=1) + "\n")
    table = markdown(results, settings)
    (RESULTS / "official.md").write_text(table)
    print(table)
    draw(results, options)


def markdown(results: dict[str, dict[str, Any]], settings: dict[str, Any]) -> str:
    """Return the table of all decks and programs."""
    order = "side by side" if settings["side_by_side"] else "in turns"
    head = (
        f"{settings['cpu_minutes']:g} CPU minutes each, {settings['threads']} thread(s), "
        f"{settings['forward_passes']} forward passes an iteration, 20 openings, CVaR, {order}. "
        "Made by `make bench-official`; all iterations are in `official.json`."
    )
    columns = (
        "deck",
        "program",
        "CPU s",
        "iterations",
        "passes",
        "last lower bound, 10⁶ $",
        "CPU s until the other's last bound",
        "peak memory, MB",
    )
    title = "# Official decks as published: ours and cobre-python for the same CPU time"
    lines = [title, "", head, "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for deck, result in results.items():
        for program, curve in result["curves"].items():
            lines.append(row(deck, program, curve, result["curves"], settings["forward_passes"]))
    columns = ("deck", "CPU s of our mean iteration", "predicted", "200 x 50 on 8 / 16 / 64 cores, h")
    lines += ["", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for deck, result in results.items():
        curve, predicted = result["curves"]["cobre"], result["prediction"]
        mean = (curve[-1]["cpu_s"] - curve[0]["cpu_s"]) / max(len(curve) - 1, 1)
        hours = " / ".join(f"{estimate['training_s'] / 3600.0:.1f}" for estimate in predicted["official"])
        lines.append(f"| {deck} | {mean:.1f} | {predicted['iteration_cpu_s']:.1f} | {hours} |")
    return "\n".join(lines) + "\n" + NOTE


def row(deck: str, program: str, curve: Iterations, curves: dict[str, Iterations], passes: int) -> str:
    """Return one program's row of the table."""
    last = curve[-1]
    goal = min(other[-1]["lower_bound"] for name, other in curves.items() if name != program)
    reached = next((f"{line['cpu_s']:.0f}" for line in curve if line["lower_bound"] >= goal), "not reached")
    return (
        f"| {deck} | {program} | {last['cpu_s']:.0f} | {len(curve)} | {passes * len(curve)} "
        f"| {last['lower_bound'] / 1e6:,.1f} | {reached} | {last['peak_bytes'] / 1e6:.0f} |"
    )


def draw(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Draw lower bounds over CPU time, one panel a deck."""
    figure, panels = plt.subplots(1, len(results), figsize=(6 * len(results), 4.5), layout="constrained", squeeze=False)
    for axes, (deck, result) in zip(panels[0], results.items(), strict=True):
        for program, curve in result["curves"].items():
            minutes = [line["cpu_s"] / 60.0 for line in curve]
            axes.plot(minutes, [line["lower_bound"] / 1e9 for line in curve], ".-", label=program)
        axes.set_xlabel("CPU minutes, preparation included")
        axes.set_ylabel("lower bound, 10⁹ $")
        axes.set_title(f"{deck}, 20 openings, {options.forward_passes} forward passes", fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(RESULTS / "official.svg", metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
