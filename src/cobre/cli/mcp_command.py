"""`cobre mcp`: a server for assistants, over standard input and output."""

from pathlib import Path

import click

from cobre.cli.error_reporting import fail, report_errors
from cobre.cli.exit_codes import ExitCode
from cobre.errors import install_command


@click.command()
@click.option(
    "--root",
    "roots",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A folder that the server may read and write; can be given several times.",
)
@click.option(
    "--max-studies",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Largest number of studies at a time.",
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
