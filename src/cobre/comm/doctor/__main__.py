"""`python -m cobre.comm.doctor [--json]`: exit code 0 if the backends local and shm are usable here, otherwise 1."""

import argparse
import sys
from collections.abc import Sequence

from cobre.comm.doctor.diagnosis import as_json, as_text, diagnose


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the diagnosis of this machine and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.doctor",
        description="Report for each backend whether it is usable on this machine, and why.",
        epilog="Exit code: 0 if the backends local and shm are usable, otherwise 1.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    show = as_json if parser.parse_args(arguments).json else as_text
    diagnosis = diagnose()
    print(show(diagnosis))  # noqa: T201 - what the command is for
    return 0 if diagnosis.is_healthy else 1


if __name__ == "__main__":
    sys.exit(main())
