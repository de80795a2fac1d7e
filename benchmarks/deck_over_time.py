"""The whole official deck, 120 stages, trained by ours and by cobre-python for the same time: lower bounds over time.

`python benchmarks/deck_over_time.py --minutes 60 --threads 2 --forward-passes 4` takes turns; with `--side-by-side`
both train at once, which is fair as long as every thread has a core of its own. Results go to
`benchmarks/results/production`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sddp.peer_environment import peer_environment
from sddp.studies import DECKS, GENERATED, ROOT

PROGRAMS = ROOT / "benchmarks" / "sddp" / "programs"
RESULTS = ROOT / "benchmarks" / "results" / "production"
NOT_FILLED = 41  # cobre-python and ours count the water of its filling in different ways
Curves = dict[str, list[tuple[float, float]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, keep, draw."""
    options = parse(arguments)
    if not (DECKS / "pmo_2018").is_dir():
        print(f"{DECKS / 'pmo_2018'} is not there: nothing to train", file=sys.stderr)
        return 1
    case = common_form(DECKS / "pmo_2018", GENERATED / "deck-common-120")
    commands = {
        "cobre": [sys.executable, str(PROGRAMS / "follow_training.py")],
        "cobre-python": [str(peer_environment().python), str(PROGRAMS / "follow_training.py")],
    }
    request = json.dumps({"case": str(case), "threads": options.threads, "forward_passes": options.forward_passes})
    running = {}
    curves: Curves = {}
    for name, command in commands.items():
        running[name] = subprocess.Popen([*command, request], stdout=subprocess.PIPE, text=True)
        if not options.side_by_side:
            curves[name] = follow(running.pop(name), options.minutes)
    deadline = time.monotonic() + 60.0 * options.minutes
    for name, process in running.items():
        curves[name] = follow(process, max(0.0, deadline - time.monotonic()) / 60.0)
    keep(curves, options)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each, reading the case included (60)")
    parser.add_argument("--threads", type=int, default=2, help="of each (2)")
    parser.add_argument("--forward-passes", type=int, default=4, help="of an iteration (4)")
    parser.add_argument("--side-by-side", action="store_true", help="both at once instead of one after the other")
    return parser.parse_args(arguments)


def common_form(deck: Path, to: Path) -> Path:
    """The deck as both programs understand it alike: no minimum outflow before a plant is filled, one plant filled."""
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
    without_outflow(to / "constraints" / "hydro_bounds.parquet", begins)
    return to


def without_outflow(path: Path, begins: dict[int, int]) -> None:
    """Minimum outflows of zero before plants are filled; rows that are not there are added."""
    table = pq.read_table(path)
    rows = {(row["hydro_id"], row["stage_id"]): row for row in table.to_pylist()}
    empty = dict.fromkeys(table.schema.names)
    for plant, begin in begins.items():
        for stage in range(begin):
            row = rows.setdefault((plant, stage), {**empty, "hydro_id": plant, "stage_id": stage})
            row["min_outflow_m3s"] = 0.0
    pq.write_table(
        pa.Table.from_pylist([rows[key] for key in sorted(rows)], table.schema), path, compression="none"
    )  # its reader knows no snappy


def follow(process: subprocess.Popen[str], minutes: float) -> list[tuple[float, float]]:
    """Let a program train until its time is over; what it told: seconds of training and lower bounds."""
    try:
        process.wait(60.0 * minutes)
    except subprocess.TimeoutExpired:
        process.terminate()
    told, _ = process.communicate()
    return [tuple(json.loads(line)) for line in told.splitlines() if line.startswith("[") and line.endswith("]")]


def keep(curves: Curves, options: argparse.Namespace) -> None:
    """Write the numbers and a picture."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    shown = {"minutes": options.minutes, "threads": options.threads, "forward_passes": options.forward_passes}
    shown |= {"side_by_side": options.side_by_side, "lower_bounds": curves}
    (RESULTS / "deck_over_time.json").write_text(json.dumps(shown, indent=1) + "\n")
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for name, curve in curves.items():
        axes.plot([at / 60.0 for at, _ in curve], [bound / 1e9 for _, bound in curve], ".-", label=name)
        print(f"{name}: {len(curve)} iterations, lower bound {curve[-1][1] if curve else float('nan'):,.0f}")
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("lower bound, 10⁹ $")
    passes = f"{options.forward_passes} forward passes, {options.threads} thread(s) each"
    axes.set_title(f"Official deck, 120 stages, 20 openings, {passes}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(RESULTS / "deck_over_time.svg", metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
