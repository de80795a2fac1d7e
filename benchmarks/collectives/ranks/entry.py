"""Command line of such a rank, and the file of durations that it leaves for the benchmark."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from collectives.adapters.base import Adapter
from collectives.cases import select_cases
from collectives.timing import Durations, measure_in_turns


def rank_arguments(folder: str, cases: Sequence[str], *, quick: bool) -> list[str]:
    """Return command-line arguments for `rank_parser`."""
    return [folder, *cases, *(["--quick"] if quick else [])]


def rank_parser() -> argparse.ArgumentParser:
    """Return the parser of `FOLDER CASE ... [--quick]`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--quick", action="store_true")
    return parser


def measure_and_leave(adapters: Sequence[Adapter], options: argparse.Namespace) -> None:
    """Measure, and leave every adapter's durations in the folder."""
    durations = measure_in_turns(adapters, select_cases(options.cases, quick=options.quick))
    durations_file(options.folder, adapters[0].rank).write_text(json.dumps(durations))


def read_durations(folder: str, size: int) -> list[list[Durations]]:
    """Read the durations that the ranks have written, by adapter and then by rank."""
    by_rank = [json.loads(durations_file(Path(folder), rank).read_text()) for rank in range(size)]
    return [list(ranks) for ranks in zip(*by_rank, strict=True)]


def durations_file(folder: Path, rank: int) -> Path:
    """Return the file to which a rank writes its durations."""
    return folder / f"rank{rank}.json"
