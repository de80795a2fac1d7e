"""Merge the traces of all ranks: `python -m cobre.comm.trace DIR [-o trace.json]`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cobre.comm.trace.reading import TraceError, align_clocks, read_run
from cobre.comm.trace.summary import chrome_trace, summary

UNUSABLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the merged trace and print a summary; exit code 2 if there is nothing to merge."""
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.trace", description="Merge the traces of all ranks of a run, and print a summary."
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the value of COBRE_COMM_TRACE during the run")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the merged trace (default: DIR/trace.json)")
    options = parser.parse_args(arguments)
    output = options.output or options.folder / "trace.json"
    try:
        print(_merge(options.folder, output))  # noqa: T201 - what the command is for
    except (TraceError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return UNUSABLE
    return 0


def _merge(folder: Path, output: Path) -> str:
    run = read_run(folder)
    alignment = align_clocks(run)
    with output.open("w", encoding="utf-8") as file:
        json.dump(chrome_trace(run, alignment), file)
    return f"{summary(run, alignment)}\n\nwrote {output}; open it at https://ui.perfetto.dev"


if __name__ == "__main__":
    sys.exit(main())
