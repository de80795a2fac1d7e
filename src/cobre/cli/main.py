"""The command `cobre` and its subcommands."""

from pathlib import Path

import click

from cobre import __version__
from cobre.cli.about_commands import completion, doctor, version
from cobre.cli.bench_command import bench
from cobre.cli.bound_command import bound
from cobre.cli.case_commands import init, migrate, validate
from cobre.cli.command_group import SectionedGroup
from cobre.cli.convert_command import convert
from cobre.cli.export_command import export
from cobre.cli.launch_command import launch
from cobre.cli.mcp_command import mcp
from cobre.cli.run_path import OutputPath, RunPath
from cobre.cli.status_commands import explain, top
from cobre.cli.study_commands import run, simulate
from cobre.cli.verify_command import verify
from cobre.io.storage.free_memory import prefer_system_allocator


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cobre")
def main() -> None:
    """Train and simulate hydrothermal planning policies by SDDP.

    \b
    Examples:
      cobre init my_case                 create a first study
      cobre run my_case -o results       train, simulate, report
      cobre top results                  watch the run from another terminal

    Options come after the command. `cobre COMMAND --help` lists them, with examples.

    \b
    Exit codes: 0 success, 1 unexpected error, 2 wrong command line, 3 invalid case,
    4 a stage cannot be solved, 5 results cannot be written, 6 a worker failed,
    7 the policy does not fit the case, 8 results are missing or incomplete,
    9 an optional part is not installed, 130 interrupted, 143 terminated.
    """
    prefer_system_allocator()


@main.command()
@click.argument("run_a", type=RunPath())
@click.argument("run_b", type=RunPath())
@click.option("--html", type=OutputPath(), metavar="FILE", help="Also write a page with charts and tables.")
@click.option("--bits", "is_bits_only", is_flag=True, help="Compare bits only.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def compare(run_a: Path, run_b: Path, html: Path | None, is_bits_only: bool, as_json: bool) -> None:
    """Show what changed between two runs, in bits, money, energy and water.

    The first line is about bits: `identical` and a digest of bounds, cuts, policy file and simulation, or the first
    difference with both values. Then come the means of both simulations and the difference B - A with its 95 %
    confidence interval over common scenarios: cost and its components, marginal costs, generation by source, deficit,
    storage, spillage and water values, in total, by stage, and for each plant and bus. The studies may have different
    plants and stages; what only one of them has is listed. Tables are read in pieces, so memory does not grow with the
    number of scenarios.

    Exit code: 0 if the bits are identical, 1 if they differ, 8 if a directory does not hold complete results.

    \b
    Examples:
      cobre compare results results-one-plant-more
      cobre compare results results-one-plant-more --html changes.html
      cobre compare results-2-workers results-16-workers --bits
      cobre compare before after --json
    """
    from cobre.cli.compare_command import compare as compare_outputs

    compare_outputs(run_a, run_b, html=html, is_bits_only=is_bits_only, as_json=as_json)


@main.command()
@click.argument("folder", metavar="DIR", type=RunPath())
@click.option("--output", "-o", type=OutputPath(), help="The file to write (DIR/report.html).")
@click.option(
    "--full", "is_full", is_flag=True, help="Include every scenario of every plant, bus and line (a large file)."
)
@click.option("--open", "is_to_be_opened", is_flag=True, help="Open it in the browser.")
def report(folder: Path, output: Path | None, is_full: bool, is_to_be_opened: bool) -> None:
    """Write a report of the run in DIR: one HTML file that works offline.

    Every plant, bus and line can be found by name, with percentiles over all scenarios and three single scenarios.
    A run that is still in progress, or was interrupted, gets a report of the results so far.

    \b
    Examples:
      cobre report results
      cobre report results --output report.html --open
      cobre report results --full --output all-scenarios.html
    """
    from cobre.cli.report_command import report_run

    report_run(folder, output, is_full=is_full, is_to_be_opened=is_to_be_opened)


STUDIES = (init, convert, validate, migrate, run, simulate)
OTHERS = (top, bound, export, explain, doctor, verify, bench, launch, mcp, version, completion)
for command in (*STUDIES, *OTHERS):
    main.add_command(command)
