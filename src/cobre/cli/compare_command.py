"""`cobre compare`: two runs, to the last bit."""

import sys
from pathlib import Path

from cobre.cli.exit_codes import ExitCode
from cobre.cli.say import say, say_json
from cobre.cli.trouble import told
from cobre.study.compare import Comparison, compare_runs

DIFFERENT = 1  # as `cmp` has it


def compare(first: Path, second: Path, *, as_json: bool) -> None:
    """Say whether two runs are identical, or where they first differ."""
    with told():
        comparison = compare_runs(first, second)
    say_json(comparison.as_dict()) if as_json else say(described(comparison))
    sys.exit(ExitCode.SUCCESS if comparison.is_identical else DIFFERENT)


def described(comparison: Comparison) -> str:
    """For a person."""
    if comparison.is_identical:
        return f"identical\ndigest {comparison.digests[0]}"
    lines = [f"first difference in {comparison.difference}"]
    lines += [f"digest {digest}" for digest in comparison.digests]
    lines += [f"note: {note}" for note in comparison.notes]
    return "\n".join(lines)
