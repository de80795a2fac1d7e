"""Commands about the program and the machine: `doctor`, `version` and `completion`."""

import json
import sys
from typing import TYPE_CHECKING

import click

from cobre.cli.echo import echo
from cobre.cli.exit_codes import ExitCode
from cobre.wording import counted

if TYPE_CHECKING:
    from cobre.comm.doctor.machine import Finding


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
    from cobre.comm.doctor.diagnosis import as_json as json_page
    from cobre.comm.doctor.diagnosis import as_text, diagnose

    diagnosis = diagnose()
    diagnosis.sections["A study"] = [_default_split()]
    echo(json_page(diagnosis) if as_json else as_text(diagnosis))
    sys.exit(ExitCode.SUCCESS if diagnosis.is_healthy else ExitCode.UNEXPECTED)


def _default_split() -> "Finding":
    """How `cobre run` splits its work on this machine by default."""
    from cobre.comm.doctor.machine import Finding
    from cobre.errors import CobreError
    from cobre.study.placement import WORKER_PER_CORE, choose_placement

    try:
        placement = choose_placement()
    except CobreError as error:
        return Finding("cobre run", f"does not start: {error}")
    if placement.size is None:
        return Finding(
            "cobre run", f"is one of the ranks that somebody started ({placement.backend}): {placement.reason}"
        )
    each = counted(placement.threads, "thread")
    many = f"{placement.size} workers with {each} each" if placement.size > 1 else f"one process with {each}"
    trees = f"a case with a scenario tree gets {WORKER_PER_CORE}"
    return Finding("cobre run", f"{many} ({placement.reason}); {trees}; --workers and --threads choose otherwise")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def version(as_json: bool) -> None:
    """Print the versions of Cobre and of the libraries that affect results.

    \b
    Examples:
      cobre version
      cobre version --json
    """
    from cobre.io.output.manifest import software_versions

    versions = software_versions()
    lines = [json.dumps(versions)] if as_json else [f"{name} {found}" for name, found in versions.items()]
    echo("\n".join(lines))


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
    if script is None:  # the choice above has only shells that click knows
        raise click.UsageError(f"{shell} is not known")
    click.echo(script(ctx.find_root().command, {}, "cobre", "_COBRE_COMPLETE").source())
