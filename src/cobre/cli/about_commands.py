"""Commands about the program and the machine: `doctor`, `verify`, `mcp`, `version` and `completion`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cobre.cli.error_reporting import DIFFERENT, ExitCode, fail, report_errors
from cobre.cli.setting_options import IntegerRange
from cobre.cli.standard_streams import echo, echo_json
from cobre.errors import CobreError, install_command
from cobre.text import counted

if TYPE_CHECKING:
    from cobre.comm.machine import MachineFact


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def doctor(as_json: bool) -> None:
    """Check this machine: backends, cores, shared memory, network, MPI.

    Prints what works, and how to fix what does not. Two ranks are started as a test. Exit code: 0 if the backends local
    and shm can be used, otherwise 1.

    \b
    Examples:
      cobre doctor
      cobre doctor --json | jq .healthy
    """
    from cobre.comm.doctor import as_json as json_page
    from cobre.comm.doctor import as_text, diagnose

    diagnosis = diagnose()
    diagnosis.sections["A study"] = [_default_split()]
    echo(json_page(diagnosis) if as_json else as_text(diagnosis))
    sys.exit(ExitCode.SUCCESS if diagnosis.is_healthy else ExitCode.UNEXPECTED)


def _default_split() -> "MachineFact":
    """Describe how `cobre run` splits its work on this machine by default."""
    from cobre.comm.machine import MachineFact
    from cobre.study.placement import WORKER_PER_CORE, choose_placement

    try:
        placement = choose_placement()
    except CobreError as error:
        return MachineFact("cobre run", f"does not start: {error}")
    if placement.size is None:
        return MachineFact("cobre run", f"joins the ranks of a launcher ({placement.backend}): {placement.reason}")
    threads = counted(placement.threads, "thread")
    processes = f"{placement.size} workers with {threads} each" if placement.size > 1 else f"one process with {threads}"
    trees = f"a case with a scenario tree gets {WORKER_PER_CORE}"
    return MachineFact("cobre run", f"{processes} ({placement.reason}); {trees}; --workers and --threads override this")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def version(as_json: bool) -> None:
    """Print the versions of Cobre and of the libraries that affect results.

    \b
    Examples:
      cobre version
      cobre version --json
    """
    from cobre.io.output.results import software_versions

    versions = software_versions()
    echo(json.dumps(versions) if as_json else "\n".join(f"{name} {number}" for name, number in versions.items()))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script for SHELL.

    \b
    Add the line for your shell to its start-up file:
      eval "$(cobre completion bash)"          # ~/.bashrc
      eval "$(cobre completion zsh)"           # ~/.zshrc
      cobre completion fish | source           # ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is None:  # not reached: click supports all shells above
        raise click.UsageError(f"{shell} is not known")
    click.echo(script(ctx.find_root().command, {}, "cobre", "_COBRE_COMPLETE").source())


# `cobre verify`: the same bits as recorded for this version of the arithmetic.


@click.command()
@click.option("--example", "examples", multiple=True, help="Run only this example. Can be given several times.")
@click.option("--record", "is_recording", is_flag=True, help="Record the current results as the reference.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def verify(examples: tuple[str, ...], is_recording: bool, as_json: bool) -> None:
    """Run the examples and compare their bits with recorded digests.

    Each example is run with the processor's wide vector instructions and without them. Digests are recorded for each
    version of the arithmetic and of the LP library. Exit code: 0 if all bits match, 1 if one differs, 8 if nothing is
    recorded for these versions.

    \b
    Examples:
      cobre verify
      cobre verify --example two_reservoirs --json
    """
    from cobre.study import verification

    unknown = sorted(set(examples) - set(verification.ITERATIONS))
    if unknown:
        known = ", ".join(verification.ITERATIONS)
        raise click.UsageError(f"there is no example {', '.join(unknown)}; choose from {known}")
    with report_errors():
        if is_recording:
            recorded = verification.record()
            echo(f"recorded {', '.join(recorded)} for {_versions()} in {verification.RECORD}")
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
    from cobre.study import verification

    return f"arithmetic {verification.ARITHMETIC} with {verification.lp_library()}"


# `cobre mcp`: a server for assistants, over standard input and output.


@click.command()
@click.option(
    "--root",
    "roots",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A folder that the server may read and write. Can be given several times.",
)
@click.option(
    "--max-studies",
    type=IntegerRange(min=1),
    default=4,
    show_default=True,
    help="Maximum number of studies running at a time.",
)
def mcp(roots: tuple[Path, ...], max_studies: int) -> None:
    """Serve cases and runs to an AI assistant (Model Context Protocol).

    The assistant's program starts this command and talks to it over standard input and output. Paths outside the given
    folders are refused. Needs an extra: pip install 'pycobre[mcp]'.

    \b
    Examples:
      cobre mcp --root ~/studies
      cobre mcp --root ~/cases --root /data/results --max-studies 1
    """
    try:
        from cobre.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        fail(f"the server's protocol library is not installed: {install_command('[mcp]')}", ExitCode.MISSING_EXTRA)
    with report_errors():
        serve(roots, max_studies)
