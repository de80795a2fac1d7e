"""`cobre verify`: the same bits as in every other release with this arithmetic."""

import sys

import click

from cobre.cli.echo import echo, echo_json
from cobre.cli.error_reporting import report_errors
from cobre.cli.exit_codes import DIFFERENT, ExitCode


@click.command()
@click.option("--example", "examples", multiple=True, help="Run only this example; can be given several times.")
@click.option("--record", "is_to_be_recorded", is_flag=True, help="Record the current results as the reference.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def verify(examples: tuple[str, ...], is_to_be_recorded: bool, as_json: bool) -> None:
    """Run the examples and compare their bits with recorded digests.

    Each example is run with the processor's wide vector instructions and without them. Digests are recorded for each
    version of the arithmetic and of the LP library. Exit code: 0 if all bits match, 1 if one differs, 8 if nothing is
    recorded for these versions.

    \b
    Examples:
      cobre verify
      cobre verify --example two_reservoirs --json
    """
    from cobre.study.inspection import verification

    unknown = sorted(set(examples) - set(verification.ITERATIONS))
    if unknown:
        known = ", ".join(verification.ITERATIONS)
        raise click.UsageError(f"there is no example {', '.join(unknown)}; choose from {known}")
    with report_errors():
        if is_to_be_recorded:
            found = verification.record()
            echo(f"recorded {', '.join(found)} for {_versions()} in {verification.RECORD}")
            return
        checks = []
        for check in verification.verify(examples or tuple(verification.ITERATIONS)):
            checks.append(check)
            if not as_json:
                outcome = check.difference or f"as recorded ({check.bits.training[:16]})"
                echo(f"{check.example:<16} {check.instructions:<8} {outcome}")
    if as_json:
        echo_json({"versions": _versions(), "checks": [check.as_dict() for check in checks]})
    sys.exit(DIFFERENT if any(check.difference for check in checks) else ExitCode.SUCCESS)


def _versions() -> str:
    from cobre.study.inspection import verification

    return f"arithmetic {verification.ARITHMETIC} with {verification.lp_library()}"
