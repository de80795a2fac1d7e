"""`make bench-scale`: predict iteration times at production scale, after checking the model on this machine."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from cobre.sddp.training.chains import block_limits
from scale.measure import measured_apart, measured_cluster, measured_run, measured_study, spread_of
from scale.model import Cluster, Study, on_link, predict
from sddp.studies import DECKS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LINKS = ((10.0, 20e-6), (100.0, 3e-6))  # Gb/s, and s of one small message
RANKS = (16, 64, 256)
CORES_PER_MACHINE = 16


@dataclass(frozen=True, slots=True)
class Scale:
    """A study that is measured here, and the size for which a prediction is made from it."""

    title: str
    case: Path
    iterations: int
    size: Mapping[str, float]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    is_large: bool = False  # LPs whose openings are solved in blocks


# The first: the scale that the specification was written for, with 206 MB of trial states and 119 gathers of 3.2 MB of
# cuts in an iteration. The second: the deck of January 2018, measured on its first 12 stages with 4 forward
# passes; about 530 of the 1,057 state entries are stored and exchanged.
SCALES = (
    Scale(
        "The specification's scale: 192 forward passes, 120 stages, 20 openings",
        ROOT / "examples" / "large",
        12,
        {"stages": 120, "forward_passes": 192, "openings": 20, "state_bytes": 206e6, "cut_bytes": 3.2e6},
    ),
    Scale(
        "The official deck: 200 forward passes, 120 stages, 20 openings, lml1 selection",
        DECKS / "pmo_2018_common_12",
        4,
        {
            "stages": 120,
            "forward_passes": 200,
            "openings": 20,
            "state_bytes": 200 * 120 * 530 * 8.0,
            "cut_bytes": 200 * 531 * 8.0,
        },
        {"training.selection.forward_passes": 4},
        is_large=True,
    ),
)


@click.command()
def main() -> None:
    """Measure, check, predict, write."""
    machine = measured_cluster()
    measurements = [measured(scale, machine) for scale in SCALES if scale.case.is_dir()]
    content = {"machine": asdict(machine), "scales": measurements}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scale.json").write_text(json.dumps(content, indent=1) + "\n")
    text = "\n".join([*INTRODUCTION, *(line for part in measurements for line in _section(part)), ""])
    (RESULTS / "scale.md").write_text(text)
    click.echo(text)


def measured(scale: Scale, machine: Cluster) -> dict[str, Any]:
    """Compare the model with runs on this machine, and predict the time of the full-size study."""
    study = measured_study(scale.case, scale.iterations, scale.overrides)
    apart = measured_apart(scale.case, scale.iterations, 2, scale.overrides)
    study = with_blocks(scale, replace(study, spread=spread_of(apart, study)))
    runs = [measured_run(scale.case, scale.iterations, ranks, scale.overrides) for ranks in (1, 2, 4)]
    whole = with_blocks(scale, Study(**(asdict(study) | dict(scale.size))))
    return {
        "title": scale.title,
        "case": scale.case.name,
        "study": asdict(study),
        "checks": [
            {
                "ranks": run.ranks,
                "measured_s": run.iteration_s,
                "predicted_s": predict(study, machine, "shm", run.ranks).total_s,
            }
            for run in runs
        ],
        "size": dict(scale.size),
        "exchanged_bytes": whole.exchanged_bytes,
        "predictions": _predictions(whole, machine),
    }


def with_blocks(scale: Scale, study: Study) -> Study:
    """Set the block limits that follow from forward passes and openings; small studies are returned unchanged."""
    if not scale.is_large:
        return study
    return replace(study, blocks=tuple(map(float, block_limits(study.forward_passes, study.openings))))


def _predictions(study: Study, here: Cluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for ranks in RANKS:
        one_machine = Cluster(ranks, here.memory_bytes_per_s, here.shm_latency_s)
        rows.append({"backend": "shm", "link": "one machine", **asdict(predict(study, one_machine, "shm", ranks))})
        for gigabits, latency in LINKS:
            many = on_link(Cluster(CORES_PER_MACHINE, here.memory_bytes_per_s, here.shm_latency_s), gigabits, latency)
            for backend in ("tcp", "mpi"):
                row = {"backend": backend, "link": f"{gigabits:g} Gb/s", **asdict(predict(study, many, backend, ranks))}
                rows.append(row)
    return rows


INTRODUCTION = (
    "# Iteration time at scale",
    "",
    "By `make bench-scale`. The model is in `benchmarks/scale/model.py`. The numbers that it starts from were measured",
    "in this run, except the links, which are given. A solve at the whole size is taken to cost what it costs in the",
    f"study that was measured. tcp and mpi have machines of {CORES_PER_MACHINE} cores; shm is one machine with as many",
    f"cores as ranks. Load of this machine at the start: {os.getloadavg()[0]:.1f}. Cuts pile up: a solve of the last",
    "iterations takes longer, which helps all backends alike.",
)


def _section(part: Mapping[str, Any]) -> list[str]:
    return [
        "",
        f"## {part['title']}",
        "",
        f"The model beside this machine, study `{part['case']}` (2 cores, shm, one thread a rank):",
        "",
        "| ranks | measured s | predicted s | predicted / measured |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['ranks']} | {row['measured_s']:.3f} | {row['predicted_s']:.3f} "
            f"| {row['predicted_s'] / row['measured_s']:.2f} |"
            for row in part["checks"]
        ),
        "",
        f"The whole size, {part['exchanged_bytes'] / 1e6:.0f} MB exchanged in an iteration:",
        "",
        "| ranks | backend | link | compute s | imbalance s | exchange s | iteration s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {row['ranks']} | {row['backend']} | {row['link']} | {row['compute_s']:.2f} | {row['imbalance_s']:.2f} "
            f"| {row['exchange_s']:.3f} | {row['compute_s'] + row['imbalance_s'] + row['exchange_s']:.2f} |"
            for row in part["predictions"]
        ),
    ]


if __name__ == "__main__":
    main()
