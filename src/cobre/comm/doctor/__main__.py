"""`python -m cobre.comm.doctor [--json]`: exit code 0 when local and shm are usable here, 1 otherwise."""

import argparse
import sys
from collections.abc import Sequence

from cobre.comm.doctor.examination import examine
from cobre.comm.doctor.page import as_json, as_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine and print."""
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.doctor",
        description="Say for each backend whether it is usable here, and why.",
        epilog="Exit code 0: local and shm are usable.",
    )
    parser.add_argument("--json", action="store_true", help="print for programs")
    show = as_json if parser.parse_args(arguments).json else as_text
    diagnosis = examine()
    print(show(diagnosis))  # noqa: T201 - what the command is for
    return 0 if diagnosis.is_healthy else 1


if __name__ == "__main__":
    sys.exit(main())
