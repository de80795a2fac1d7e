"""Errors as a person sees them: a few lines on standard error and an exit code that tells the kind."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from cobre.cli.exit_codes import ExitCode


@contextmanager
def told() -> Iterator[None]:
    """Turn the errors that a user can act on into messages; anything else is our fault and is shown whole."""
    from cobre.io.atomic import WriteError
    from cobre.io.problems import InvalidCaseError
    from cobre.sddp.lp.failure import StageFailedError
    from cobre.stochastic.errors import NoiseModelError

    try:
        yield
    except InvalidCaseError as error:
        fail(str(error), ExitCode.INVALID_CASE)
    except NoiseModelError as error:
        fail(str(error), ExitCode.INVALID_CASE)
    except StageFailedError as error:
        fail(str(error), ExitCode.UNSOLVABLE)
    except WriteError as error:
        fail(str(error), ExitCode.OUTPUT)
    except KeyboardInterrupt:
        fail("interrupted", ExitCode.INTERRUPTED)


def fail(message: str, code: ExitCode) -> None:
    """Say it and leave."""
    click.echo(f"cobre: {message}", err=True)
    sys.exit(code)
