"""`cobre report`, `cobre compare` and `cobre export`: what is made of the results of runs."""

import sys
import webbrowser
from pathlib import Path

import click

from cobre.cli.error_reporting import DIFFERENT, ExitCode, fail, report_errors
from cobre.cli.setting_options import OutputPath, RunPath
from cobre.cli.standard_streams import echo, echo_json
from cobre.runs.files import POLICY

# `cobre report`: one HTML file about an output directory.


def report_run(folder: Path, target: Path | None, *, is_full: bool, is_to_be_opened: bool) -> None:
    """Write the report of a run and print its path; files of results that are damaged are an error afterwards."""
    from cobre.report import ReportError, write_report
    from cobre.report.run_folder import ReportNotWrittenError
    from cobre.runs.trained_case import changed_case

    damaged: list[str] = []
    with report_errors():
        try:
            written = write_report(folder, target, is_full=is_full, on_damage=damaged.extend)
        except ReportNotWrittenError as error:
            fail(str(error), ExitCode.OUTPUT)
        except ReportError as error:
            fail(str(error), ExitCode.RESULTS)
        else:
            echo(str(written))
            if (changed := changed_case(folder)) is not None:
                echo(f"note: {changed}; the report shows the case as it was", err=True)
            if is_to_be_opened:
                webbrowser.open(written.resolve().as_uri())
            if damaged:
                remedy = "restore these files from a copy, or run the study again"
                fail(f"the report leaves out what is damaged: {'; '.join(damaged)} ({remedy})", ExitCode.RESULTS)


# `cobre compare`: two runs, to the last bit and in money.


def compare(first: Path, second: Path, *, html: Path | None, is_bits_only: bool, as_json: bool) -> None:
    """Say whether two runs are identical, or where they first differ; then what changed in money."""
    from cobre.comparison.api import compare_folders
    from cobre.comparison.result import StudyComparison
    from cobre.runs.bit_comparison import compare_runs

    with report_errors():
        if is_bits_only:
            bits = compare_runs(first, second)
            comparison = StudyComparison((str(first), str(second)), bits, None)
        else:
            comparison = compare_folders(first, second)
        if html is not None:
            comparison.write_html(html)
    echo_json(comparison.as_dict()) if as_json else echo(comparison)
    sys.exit(ExitCode.SUCCESS if comparison.is_identical else DIFFERENT)


# `cobre export`: the results of a run in the form that another program reads.


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
