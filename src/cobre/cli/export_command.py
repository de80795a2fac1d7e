"""`cobre export`: the results of a run in the form that another program reads."""

from pathlib import Path

import click

from cobre.cli.echo import echo
from cobre.cli.error_reporting import report_errors
from cobre.cli.run_path import OutputPath, RunPath
from cobre.runs.files import POLICY

LAYOUTS = ("cobre-python", "novomodelo")
FORMS = ("csv", "xlsx", "netcdf", "duckdb", *LAYOUTS)


@click.command()
@click.argument("run", type=RunPath())
@click.option("--to", "form", type=click.Choice(FORMS), help="Output format; see above.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="The same as --to with this name.")
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Export only this table; can be given several times."
)
@click.option(
    "--output", "-o", type=OutputPath(), help="The new file or directory. Default: RUN-csv, RUN.xlsx and so on."
)
@click.option(
    "--case",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the case of RUN is now, if it has moved.",
)
def export(
    run: Path, form: str | None, layout: str | None, tables: tuple[str, ...], output: Path | None, case: Path | None
) -> None:
    """Export the results of RUN for other programs.

    \b
    csv           a directory with a file for each table
    xlsx          one Excel workbook with a sheet for each table, of at most
                  1,048,575 rows                                  pip install 'pycobre[excel]'
    netcdf        one NetCDF file, for xarray for example         pip install 'pycobre[netcdf]'
    duckdb        one database file, for SQL queries              pip install 'pycobre[duckdb]'
    cobre-python  the directories and files of cobre-python 0.18, as its scripts and
                  cobre-bridge read them; needs the case of the run
    novomodelo    the same for novomodelo 0.19 and novomodelo-bridge

    The tables are those of RUN/training and RUN/simulation, and two more: `stages` with dates and `entities` with
    names. Existing files are not replaced.

    \b
    Examples:
      cobre export results --to csv
      cobre export results --to xlsx --table costs --table hydros --output costs.xlsx
      cobre export results --to duckdb && duckdb results.duckdb
      cobre export results --to cobre-python --output my_case/output
    """
    from cobre.export import export_run

    if (chosen := form or layout) is None or (form and layout and form != layout):
        raise click.UsageError(f"choose a format with --to: {', '.join(FORMS)}")
    with report_errors():
        target = export_run(run, output, chosen, case, tables)
        if chosen in LAYOUTS and not (Path(target) / POLICY).exists():
            text = f"warning: the policy is left out: {chosen} keeps cuts of a graph of nodes in another way"
            echo(text, err=True)
        echo(target)
