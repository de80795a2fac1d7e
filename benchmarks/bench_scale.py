"""`make bench-scale`: predict iteration times at production scale, after checking the model on this machine."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from scale.measure import measured_cluster, measured_run, measured_study, spread_of
from scale.model import Cluster, Study, on_link, predict

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LINKS = ((10.0, 20e-6), (100.0, 3e-6))  # Gb/s, and s of one small message
RANKS = (16, 64, 256)
CORES_PER_MACHINE = 16

# The production scale that the specification was written for: 192 forward passes on 16 ranks, 206 MB of trial states
# and 119 gathers of 3.2 MB of cuts in an iteration.
PRODUCTION = {"stages": 120, "forward_passes": 192, "openings": 20, "state_bytes": 206e6, "cut_bytes": 3.2e6}


@click.command()
@click.option("--case", default=str(ROOT / "examples" / "large"))
@click.option("--iterations", default=16)
def main(case: str, iterations: int) -> None:
    """Measure, check, predict, write."""
    study, _ = measured_study(Path(case), iterations)
    cluster = measured_cluster()
    runs = [measured_run(Path(case), iterations, ranks) for ranks in (1, 2, 4)]
    study = Study(**(asdict(study) | {"spread": spread_of(runs[1], study)}))
    production = Study(**(asdict(study) | PRODUCTION))
    checks = [
        {
            "ranks": run.ranks,
            "measured_s": run.iteration_s,
            "predicted_s": predict(study, cluster, "shm", run.ranks).total_s,
        }
        for run in runs
    ]
    predictions = _predictions(production, cluster)
    content = {
        "case": Path(case).name,
        "study": asdict(study),
        "machine": asdict(cluster),
        "checks": checks,
        "production": PRODUCTION,
        "predictions": predictions,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scale.json").write_text(json.dumps(content, indent=1) + "\n")
    text = _text(content)
    (RESULTS / "scale.md").write_text(text)
    click.echo(text)


def _predictions(study: Study, here: Cluster) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for ranks in RANKS:
        one_machine = Cluster(ranks, here.memory_bytes_per_s, here.shm_latency_s)
        rows.append({"backend": "shm", "link": "one machine", **asdict(predict(study, one_machine, "shm", ranks))})
        for gigabits, latency in LINKS:
            many = on_link(Cluster(CORES_PER_MACHINE, here.memory_bytes_per_s, here.shm_latency_s), gigabits, latency)
            for backend in ("tcp", "mpi"):
                row = {"backend": backend, "link": f"{gigabits:g} Gb/s", **asdict(predict(study, many, backend, ranks))}
                rows.append(row)
    return rows


def _text(content: dict[str, object]) -> str:
    checks, rows = content["checks"], content["predictions"]
    assert isinstance(checks, list)
    assert isinstance(rows, list)
    lines = [
        "# Iteration time at scale",
        "",
        "By `make bench-scale`. The model is in `benchmarks/scale/model.py`. The numbers that it starts from were",
        f"measured in this run on the study `{content['case']}`, except the links, which are given. A solve at",
        "production scale is taken to cost what it costs there. Larger LPs take longer, which helps all backends.",
        "",
        "## The model beside this machine (2 cores, shm, one thread a rank)",
        "",
        "| ranks | measured s | predicted s | predicted / measured |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['ranks']} | {row['measured_s']:.3f} | {row['predicted_s']:.3f} "
            f"| {row['predicted_s'] / row['measured_s']:.2f} |"
            for row in checks
        ),
        "",
        "## Production scale: 192 forward passes, 120 stages, 587 MB told in an iteration",
        "",
        f"Machines of {CORES_PER_MACHINE} cores for tcp and mpi; shm is one machine with as many cores as ranks.",
        "",
        "| ranks | backend | link | compute s | imbalance s | exchange s | iteration s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {row['ranks']} | {row['backend']} | {row['link']} | {row['compute_s']:.2f} | {row['imbalance_s']:.2f} "
            f"| {row['exchange_s']:.3f} | {row['compute_s'] + row['imbalance_s'] + row['exchange_s']:.2f} |"
            for row in rows
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
