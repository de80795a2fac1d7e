"""Memory of a study at production size, asked of the kernel (PSS: a page that several ranks map counts once in all).

`python benchmarks/sddp/deck_memory.py CASE`: what ranks hold once a study is ready, by number of ranks; the peak of a
run by number of simulated scenarios; a pool of cuts of some GB with the checkpoint, policy and digest made of it.
`--parts` chooses. Every measurement is a process of its own.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from cobre.comm import Backend, launch  # noqa: E402
from cobre.io.storage.allocators import prefer_system_allocator  # noqa: E402
from cobre.study.requests import CaseRequest, RunRequest, with_iterations  # noqa: E402
from collectives.footprint import memory_statistics, peak_bytes  # noqa: E402
from collectives.report import table  # noqa: E402

RANKS = (1, 2, 4)
SCENARIOS = (20, 100)
POOL_RANKS = (1, 2)
NOBODYS = {"cobre": "", "solver": "", "numpy": "", "case": ""}
PARTS = ("ranks", "scenarios", "pool")
RESULT = ROOT / "benchmarks" / "results" / "deck_memory.md"
INTRODUCTION = "By `benchmarks/sddp/deck_memory.py`. PSS counts a page that several ranks map once in all of them.\n"
TITLES = {
    "ranks": "Ranks that are ready to train",
    "scenarios": "A run of one iteration with one forward pass, by simulated scenarios",
    "pool": "A pool of cuts, what is made of it, and nothing twice",
}


def hold_ready(comm: Backend, case: str) -> tuple[int, int, int]:
    """Prepare a study; return PSS, peak resident size and shared bytes. Collective: call on every rank."""
    from cobre.study.preparation.on_ranks import prepare_on_ranks  # noqa: PLC0415

    ready = prepare_on_ranks(comm, CaseRequest(Path(case), None, 1), lambda _: None)
    comm.barrier()
    held = memory_statistics()["Pss"], peak_bytes(), ready.shared_bytes
    comm.barrier()
    return held


def run_whole(comm: Backend, case: str, output: str, scenarios: int) -> tuple[int, str]:
    """Run one iteration with one forward pass and simulate; return peak bytes and digest. Collective."""
    from cobre.study.run import run_study  # noqa: PLC0415

    overrides = {"training.selection.forward_passes": 1, "simulation.selection.num_scenarios": scenarios}
    request = CaseRequest(Path(case), with_iterations(overrides, 1), 1)
    summary = run_study(comm, RunRequest(request, Path(output)), lambda _: None)
    return peak_bytes(), summary.simulation_digest or ""


def hold_pool(comm: Backend, folder: str, stages: int, cuts: int, dimension: int) -> list[tuple[str, int, int]]:
    """Fill, digest, save and restore a pool of cuts; return PSS and peak resident bytes after each step. Collective."""
    from cobre.io.storage.array_file import ArrayFile, write_arrays  # noqa: PLC0415
    from cobre.sddp.cut_pool import CutPool, CutSet  # noqa: PLC0415
    from cobre.sddp.training.context import TrainingState  # noqa: PLC0415
    from cobre.sddp.training.visited_states import VisitedStates  # noqa: PLC0415
    from cobre.study.training.checkpoints import read_checkpoint, restore_cuts, snapshot  # noqa: PLC0415
    from cobre.study.training.train import training_digest  # noqa: PLC0415

    found = []

    def note(what: str) -> None:
        comm.barrier()
        found.append((what, memory_statistics()["Pss"], peak_bytes()))
        comm.barrier()
        Path("/proc/self/clear_refs").write_text("5")

    note("nothing yet")
    pool = CutPool(comm, stages, dimension)
    step = 250
    for iteration in range(cuts // step):
        slots = pool.reserve_slots(iteration + 1, step)
        block = CutSet(np.full(step, float(iteration)), np.full((step, dimension), 0.5 + iteration))
        for stage in range(stages):
            pool.write(stage, slots, block)
    note(f"a pool of {pool.nbytes / 1e9:.2f} GB")
    training_digest([], pool)
    note("its digest")
    state = TrainingState(pool, [], VisitedStates(pool))
    if comm.rank == 0:
        write_arrays(Path(folder) / "pool.ckpt", {"fingerprint": NOBODYS}, snapshot(state, []))
    note("a checkpoint of it")
    pool.close()
    stored = read_checkpoint(comm, ArrayFile.open(Path(folder) / "pool.ckpt") if comm.rank == 0 else None)
    if stored is None:
        raise SystemExit("no checkpoint was found")
    restored = CutPool(comm, stages, dimension)
    with closing(stored.large):
        restore_cuts(restored, stored, len(stored.arrays["created"]))
    note("the pool read from it")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", type=Path, help="a case directory")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--scenarios", nargs="+", type=int, default=SCENARIOS)
    parser.add_argument("--pool-gb", type=float, default=4.0, help="size of the pool (4)")
    parser.add_argument("--keep", action="store_true", help=f"write the tables to {RESULT.relative_to(ROOT)}, too")
    options = parser.parse_args(arguments)
    prefer_system_allocator()  # as the command does
    parts = [f"## {TITLES[part]}\n\n{MEASURES[part](options)}\n" for part in options.parts]
    text = "\n".join([f"# Memory at production size: {options.case.name}\n", INTRODUCTION, *parts])
    print(text)
    if options.keep:
        RESULT.write_text(text)
    return 0


def _megabytes(values: Sequence[int]) -> str:
    return " ".join(f"{value / 1e6:.0f}" for value in values)


def _ranks(options: argparse.Namespace) -> str:
    rows = []
    for ranks in RANKS:
        held = launch.run(hold_ready, ranks, "shm", (str(options.case),))
        pss, peaks, shared = zip(*held, strict=True)
        rows.append([str(ranks), _megabytes([sum(pss)]), _megabytes(pss), _megabytes(peaks), _megabytes(shared[:1])])
    return table(("ranks", "PSS, all, MB", "PSS by rank, MB", "peak RSS by rank, MB", "shared, MB"), rows)


def _scenarios(options: argparse.Namespace) -> str:
    rows = []
    for scenarios in options.scenarios:
        with tempfile.TemporaryDirectory() as folder:
            held = launch.run(run_whole, 1, "shm", (str(options.case), folder, scenarios))
        rows.append([str(scenarios), _megabytes([held[0][0]]), held[0][1][:12]])
    return table(("scenarios", "peak RSS, MB", "digest"), rows)


def _pool(options: argparse.Namespace) -> str:
    rows = [row for ranks in POOL_RANKS for row in _pool_on(options, ranks)]
    return table(("ranks", "", "PSS of all ranks, MB", "peak RSS of the largest rank meanwhile, MB"), rows)


def _pool_on(options: argparse.Namespace, ranks: int) -> list[list[str]]:
    stages, dimension = 12, 1057
    cuts = int(options.pool_gb * 1e9 / (8 * stages * (1 + dimension)) / 250) * 250
    with tempfile.TemporaryDirectory() as folder:
        held = launch.run(hold_pool, ranks, "shm", (folder, stages, cuts, dimension))
    rows = []
    for step in zip(*held, strict=True):
        what, now, peaks = zip(*step, strict=True)
        rows.append([str(ranks), what[0], _megabytes([sum(now)]), _megabytes([max(peaks)])])
    return rows


MEASURES = {"ranks": _ranks, "scenarios": _scenarios, "pool": _pool}


if __name__ == "__main__":
    sys.exit(main())
