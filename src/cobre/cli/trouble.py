"""Errors as a person sees them: a few lines on standard error and an exit code that tells the kind."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from cobre.cli.exit_codes import ExitCode

_ENDED_BY_CTRL_C = (-signal.SIGINT, ExitCode.INTERRUPTED)  # a worker that was still starting


@contextmanager
def told() -> Iterator[None]:
    """Turn the errors that a user can act on into messages; anything else is our fault and is shown whole."""
    from cobre.comm.launch import WorkerError

    try:
        yield
    except KeyboardInterrupt:
        fail("interrupted", ExitCode.INTERRUPTED)
    except WorkerError as error:
        if isinstance(error.inner, KeyboardInterrupt) or error.exit_code in _ENDED_BY_CTRL_C:
            fail("interrupted", ExitCode.INTERRUPTED)
        if error.exit_code == -signal.SIGTERM:  # outside training, where nobody waits for the end of an iteration
            fail("terminated", ExitCode.TERMINATED)
        code = exit_code_of(error.inner)
        fail(str(error), ExitCode.WORKER) if code is None else fail(in_words(error.inner), code)
    except Exception as error:
        if (code := exit_code_of(error)) is None:
            raise
        fail(in_words(error), code)


def exit_code_of(error: BaseException | None) -> ExitCode | None:
    """The code for an error that a user can act on; None for any other."""
    return next((code for kind, code in _kinds() if isinstance(error, kind)), None)


def _kinds() -> tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], ExitCode], ...]:
    from cobre.comm import BackendError, CommError
    from cobre.io.atomic import WriteError
    from cobre.io.policy_file import PolicyFileError
    from cobre.io.problems import InvalidCaseError
    from cobre.sddp.boundary import BoundaryMismatchError
    from cobre.sddp.lp.failure import StageFailedError
    from cobre.stochastic.errors import NoiseModelError
    from cobre.study.checkpoints import CheckpointError
    from cobre.study.explanation import NothingToExplainError
    from cobre.study.fingerprint import WorldMismatchError
    from cobre.study.following import NothingToFollowError
    from cobre.study.output_lock import OutputInUseError
    from cobre.study.policy_store import PolicyMismatchError
    from cobre.study.run_content import NotAWholeRunError
    from cobre.study.templates import UnknownTemplateError

    return (
        ((InvalidCaseError, NoiseModelError), ExitCode.INVALID_CASE),
        (StageFailedError, ExitCode.UNSOLVABLE),
        ((WriteError, OutputInUseError), ExitCode.OUTPUT),
        ((PolicyFileError, PolicyMismatchError, CheckpointError, BoundaryMismatchError), ExitCode.POLICY),
        ((WorldMismatchError, CommError), ExitCode.WORKER),
        ((BackendError, UnknownTemplateError), ExitCode.USAGE),
        ((NotAWholeRunError, NothingToFollowError, NothingToExplainError), ExitCode.RESULTS),
    )


def in_words(error: BaseException | None) -> str:
    """The message, and where to learn more."""
    saved = getattr(error, "saved", None)
    return str(error) if saved is None else f"{error}\n`cobre explain {saved}` says what contradicts what."


def fail(message: str, code: ExitCode) -> NoReturn:
    """Say it and leave."""
    click.echo(f"cobre: {message}", err=True)
    sys.exit(code)
