"""`python -m cobre.comm.launch -n 4 script.py`: run a script on several ranks of this machine."""

import argparse
import importlib.util
import math
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cobre.comm.config import MAX_RANKS, WAIT_STRATEGIES
from cobre.comm.errors import BackendError
from cobre.comm.exit_report import INTERRUPTED
from cobre.comm.launch.launcher import run_script
from cobre.comm.launch.payload import WorkerError
from cobre.comm.launch.spawning import launchable_backends

USAGE_ERROR = 2
TIMED_OUT = 124
EXAMPLE = """\
example:
  python -m cobre.comm.launch -n 4 --backend shm train.py --iterations 50

Every rank runs the script as __main__ and joins the others with create_communicator(). Lines that a rank
prints are prefixed with its number. The first rank that fails stops all others; its error is printed, and
its exit code (128 + the number of the signal that killed it) becomes that of the launcher. Ctrl-C stops
all ranks.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    program, *args = options.module or [options.script, *options.args]
    if not program:
        parser.error("expected a script, or a module after -m")
    # Checked here: otherwise every rank would fail with the same traceback.
    _require_program(parser, program, is_module=bool(options.module))
    # Batch systems stop jobs by SIGTERM, whose default action would leave the ranks to the orphan reaper.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        run_script(
            program,
            options.size,
            options.backend,
            args,
            is_module=bool(options.module),
            environment=_environment(options),
            timeout_s=options.timeout,
        )
    except BackendError as error:
        return _print_error(f"cobre.comm.launch: {error}", USAGE_ERROR)
    except WorkerError as error:
        # A negative code is a signal, as in `subprocess`; shells report 128 + its number.
        return _print_error(str(error), 128 - error.exit_code if error.exit_code < 0 else error.exit_code or 1)
    except TimeoutError as error:
        return _print_error(str(error), TIMED_OUT)
    except KeyboardInterrupt:
        return _print_error("interrupted; all ranks were stopped", INTERRUPTED)
    except BrokenPipeError:
        return _ignore_broken_pipe()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cobre.comm.launch",
        description="Run a Python script on several ranks of this machine.",
        usage="%(prog)s -n N [options] (script.py | -m module) [arguments ...]",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-n", dest="size", type=_size, required=True, metavar="N", help="number of ranks")
    backends = ", ".join(launchable_backends())
    parser.add_argument("--backend", default="shm", help=f"how the ranks communicate: {backends} (default: shm)")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="stop the run after S seconds (exit code 124)")
    parser.add_argument("--wait", choices=WAIT_STRATEGIES, help="how ranks sleep while they wait (shm only)")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="set an environment variable for all ranks; may be repeated",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module instead of a script")
    parser.add_argument("script", nargs="?", help="the script to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script or module")
    return parser


def _size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_RANKS:
        raise argparse.ArgumentTypeError(f"expected a number of ranks from 1 to {MAX_RANKS}, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return seconds


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def _environment(options: argparse.Namespace) -> dict[str, str]:
    variables = dict(options.env)
    if options.wait:
        variables["COBRE_SHM_WAIT"] = options.wait
    return variables


def _require_program(parser: argparse.ArgumentParser, program: str, *, is_module: bool) -> None:
    if not is_module and not Path(program).exists():
        parser.error(f"script not found: {program!r}")
    if is_module and not _module_exists(program):
        parser.error(f"module not found: {program!r}")


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _terminate(signum: int, frame: object) -> NoReturn:  # noqa: ARG001 - the signature of a signal handler
    """Raise an exception, so that the ranks are stopped while the stack unwinds."""
    raise SystemExit(128 + signum)


def _print_error(text: str, exit_code: int) -> int:
    sys.stderr.write(text + "\n")
    return exit_code


def _ignore_broken_pipe() -> int:
    """Redirect stdout, whose reader is gone, or the interpreter would report the broken pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
