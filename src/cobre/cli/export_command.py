"""`cobre export`: the results of a run in the form that another program reads."""

from pathlib import Path

import click

from cobre.cli.run_path import OutputPath, RunPath
from cobre.cli.say import say
from cobre.cli.trouble import told


@click.command()
@click.argument("run", type=RunPath())
@click.option("--layout", type=click.Choice(["cobre-python"]), required=True, help="Whose folders and files to write.")
@click.option("--output", "-o", type=OutputPath(), help="The new directory to write (RUN-LAYOUT).")
@click.option(
    "--case", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where the case of RUN lies now."
)
def export(run: Path, layout: str, output: Path | None, case: Path | None) -> None:
    """Write the results in RUN for programs that read another layout.

    cobre-python: tables in a folder for each scenario, dictionaries, counters, and the policy in its own files, as
    cobre-python 0.18 and cobre-bridge read them. The case of the run is needed: limits and names of all entities.

    \b
    Examples:
      cobre export results --layout cobre-python
      cobre export results --layout cobre-python --output my_case/output && cobre-bridge dashboard my_case
    """
    from cobre.export import export_run

    with told():
        say(export_run(run, output or run.with_name(f"{run.resolve().name}-{layout}"), layout, case))
