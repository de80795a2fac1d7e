"""Errors as a person sees them: a few lines on standard error and an exit code that tells the kind."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from cobre.cli.exit_codes import ExitCode


@contextmanager
def told() -> Iterator[None]:
    """Turn the errors that a user can act on into messages; anything else is our fault and is shown whole."""
    from cobre.comm.launch import WorkerError

    try:
        yield
    except KeyboardInterrupt:
        fail("interrupted", ExitCode.INTERRUPTED)
    except WorkerError as error:
        if isinstance(error.inner, KeyboardInterrupt):
            fail("interrupted", ExitCode.INTERRUPTED)
        code = exit_code_of(error.inner)
        fail(str(error), ExitCode.WORKER) if code is None else fail(str(error.inner), code)
    except Exception as error:
        if (code := exit_code_of(error)) is None:
            raise
        fail(str(error), code)


def exit_code_of(error: BaseException | None) -> ExitCode | None:
    """The code for an error that a user can act on; None for any other."""
    return next((code for kind, code in _kinds() if isinstance(error, kind)), None)


def _kinds() -> tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], ExitCode], ...]:
    from cobre.comm import BackendError, CommError
    from cobre.io.atomic import WriteError
    from cobre.io.policy_file import PolicyFileError
    from cobre.io.problems import InvalidCaseError
    from cobre.sddp.lp.failure import StageFailedError
    from cobre.stochastic.errors import NoiseModelError
    from cobre.study.checkpoints import CheckpointError
    from cobre.study.fingerprint import WorldMismatchError
    from cobre.study.output_lock import OutputInUseError
    from cobre.study.policy_store import PolicyMismatchError

    return (
        ((InvalidCaseError, NoiseModelError), ExitCode.INVALID_CASE),
        (StageFailedError, ExitCode.UNSOLVABLE),
        ((WriteError, OutputInUseError), ExitCode.OUTPUT),
        ((PolicyFileError, PolicyMismatchError, CheckpointError), ExitCode.POLICY),
        ((WorldMismatchError, CommError), ExitCode.WORKER),
        (BackendError, ExitCode.USAGE),
    )


def fail(message: str, code: ExitCode) -> None:
    """Say it and leave."""
    click.echo(f"cobre: {message}", err=True)
    sys.exit(code)
