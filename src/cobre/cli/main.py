"""The command `cobre` and its subcommands."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from cobre import __version__
from cobre.cli.about_commands import completion, doctor, mcp, verify, version
from cobre.cli.bench_command import bench
from cobre.cli.case_commands import convert, init, migrate, validate
from cobre.cli.error_reporting import ExitCode
from cobre.cli.launch_command import launch
from cobre.cli.result_commands import export
from cobre.cli.setting_options import OutputPath, RunPath
from cobre.cli.standard_streams import StandardStreams, as_error, echo, echo_json, show_traceback
from cobre.cli.study_commands import bound, explain, run, simulate, top
from cobre.io.storage.free_memory import prefer_system_allocator

# How `cobre --help` looks: commands by what one wants to do, headings in bold where a terminal shows it.


SECTIONS = (
    ("Studies", ("init", "convert", "validate", "migrate", "run", "simulate")),
    ("Results", ("top", "report", "bound", "compare", "export", "explain")),
    ("Machines and programs", ("doctor", "verify", "bench", "launch", "mcp")),
    ("About", ("version", "completion")),
)


class BoldHeadings(click.HelpFormatter):
    """Bold, as far as colour is allowed at all."""

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section of commands."""
        super().write_heading(click.style(heading, bold=True))


class HelpfulContext(click.Context):
    """A context without colours where NO_COLOR is set."""

    formatter_class = BoldHeadings

    def __init__(self, *args: Any, **settings: Any) -> None:
        if os.environ.get("NO_COLOR"):
            settings["color"] = False
        super().__init__(*args, **settings)


class SectionedGroup(click.Group):
    """Commands in sections; what no section names comes last."""

    context_class = HelpfulContext

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command; output that could not be printed gives a failing exit code."""
        sys.excepthook = show_traceback
        with StandardStreams() as streams:
            try:
                return super().main(*args, **settings)
            except SystemExit as ended:
                sys.stdout.flush()
                if streams.has_lost_answer and not ended.code:
                    raise SystemExit(ExitCode.OUTPUT) from None
                raise

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C before a command is ready to take it ends as it does later; so does a wrong command line under MPI."""
        wants_json = "--json" in sys.argv[1:]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("cobre: interrupted", err=True)
            if wants_json:
                echo_json(as_error("interrupted", ExitCode.INTERRUPTED))
            sys.exit(ExitCode.INTERRUPTED)
        except click.ClickException as error:
            if wants_json:
                echo_json(as_error(error.format_message(), error.exit_code))
            if any("RANK" in name for name in os.environ):  # a launcher's variable, perhaps; a closer look takes longer
                from cobre.cli.error_reporting import report_with_other_ranks

                report_with_other_ranks(error)
            raise

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the help layout of this group."""
        cmd.context_class = HelpfulContext
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, section by section."""
        known = [name for _, names in SECTIONS for name in names if name in self.commands]
        return known + sorted(set(self.commands) - set(known))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list for each section, all with the same indent."""
        left = set(self.commands)
        for title, names in (*SECTIONS, ("Other commands", sorted(left - _named()))):
            rows = [(name, self._summary(name)) for name in names if name in left]
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(f"{name:<12}", text) for name, text in rows])

    def _summary(self, name: str) -> str:
        return self.commands[name].get_short_help_str(limit=100)


def _named() -> set[str]:
    return {name for _, names in SECTIONS for name in names}


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
    from cobre.cli.result_commands import compare as compare_outputs

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
    from cobre.cli.result_commands import report_run

    report_run(folder, output, is_full=is_full, is_to_be_opened=is_to_be_opened)


STUDIES = (init, convert, validate, migrate, run, simulate)

OTHERS = (top, bound, export, explain, doctor, verify, bench, launch, mcp, version, completion)

for command in (*STUDIES, *OTHERS):
    main.add_command(command)
