"""Write a case of a chosen size: `python examples/generate_sized.py FOLDER --hydros 160 --blocks 3 --lags 6 --seed 1`.

With production planes: `... FOLDER --hydros 60 --planes 100 --openings 10 --forward-passes 2 --iterations 2`.
The same options give the same files on every machine, apart from the version of the Parquet library.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from generation.files import write_case
from generation.sized import BLOCKS, Size, sized

EXPLANATIONS = {
    "hydros": "hydro plants; thermal plants, load and lines grow with them",
    "blocks": "load blocks of a stage: 1, 2 or 3",
    "lags": "order of the autoregressive inflow models; half of the rivers have one less",
    "planes": "production planes of each hydro plant; 0: constant productivity",
    "stages": "months, at least 2",
    "openings": "of each stage",
    "forward_passes": "of an iteration",
    "iterations": "of training",
    "simulated": "scenarios of the simulation",
    "seed": "seed of the random numbers",
}


def parse(arguments: Sequence[str] | None) -> tuple[Path, Size]:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the case is written")
    for field in fields(Size):
        option = f"--{field.name.replace('_', '-')}"
        explanation = f"{EXPLANATIONS[field.name]} ({field.default})"
        parser.add_argument(option, type=int, default=field.default, metavar="N", help=explanation)
    options = vars(parser.parse_args(arguments))
    folder, size = options.pop("folder"), Size(**options)
    if problem := refusal(size):
        parser.error(problem)
    return folder, size


def refusal(size: Size) -> str:
    """Return the reason why a size is invalid; empty if it is valid."""
    least = {"lags": 0, "planes": 0, "stages": 2, "seed": 0}
    for field in fields(Size):
        if (value := getattr(size, field.name)) < (bound := least.get(field.name, 1)):
            return f"--{field.name.replace('_', '-')}: expected at least {bound}, got {value}"
    if size.planes == 1:
        return "--planes: expected 0 or at least 2, got 1"
    return "" if size.blocks in BLOCKS else f"--blocks: expected 1, 2 or 3, got {size.blocks}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the case."""
    folder, size = parse(arguments)
    files = sized(size).files()
    write_case(folder, files)
    print(f"{folder}: {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
