"""The command `cobre` and its subcommands."""

import os
import sys
from typing import Any

import click

from cobre import __version__
from cobre.cli.about_commands import completion, doctor, mcp, verify, version
from cobre.cli.bench_command import bench
from cobre.cli.case_commands import convert, init, migrate, validate
from cobre.cli.error_reporting import STOPPED_DETAILS, ExitCode, report_with_other_ranks, usage_details
from cobre.cli.launch_command import launch
from cobre.cli.result_commands import bound, compare, explain, export, report, top
from cobre.cli.run_command import run, simulate
from cobre.cli.standard_streams import StandardStreams, as_error, echo, echo_json, show_traceback
from cobre.io.storage.allocators import prefer_system_allocator
from cobre.versions import explain_import_error

# Layout of `cobre --help`: commands by task, with bold headings on a terminal.

SECTIONS = (
    ("Studies", ("init", "convert", "validate", "migrate", "run", "simulate")),
    ("Results", ("top", "report", "bound", "compare", "export", "explain")),
    ("Machines and programs", ("doctor", "verify", "bench", "launch", "mcp")),
    ("About", ("version", "completion")),
)


class BoldHeadings(click.HelpFormatter):
    """A help formatter with bold headings, where colour is allowed."""

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
    """A group of commands in sections; commands without a section come last."""

    context_class = HelpfulContext

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command; output that could not be printed gives a failing exit code."""
        sys.excepthook = show_traceback
        with StandardStreams() as streams:
            try:
                return super().main(*args, **settings)
            except SystemExit as ended:
                sys.stdout.flush()
                if streams.has_lost_result and not ended.code:
                    raise SystemExit(ExitCode.OUTPUT) from None
                raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report an early Ctrl-C like a later one, and usage errors once under MPI."""
        wants_json = "--json" in sys.argv[1:]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("cobre: interrupted", err=True)
            if wants_json:
                echo_json(as_error("interrupted", ExitCode.INTERRUPTED, STOPPED_DETAILS[ExitCode.INTERRUPTED]))
            sys.exit(ExitCode.INTERRUPTED)
        except click.ClickException as error:
            if wants_json:
                echo_json(as_error(error.format_message(), error.exit_code, usage_details(error)))
            # A cheap test for variables of a launcher; full detection is slow.
            if any("RANK" in name for name in os.environ):
                report_with_other_ranks(error)
            raise
        except (AttributeError, ImportError, TypeError) as error:
            if (stale := explain_import_error(error)) is None:
                raise
            echo(f"cobre: {stale}", err=True)
            if wants_json:
                echo_json(as_error(str(stale), ExitCode.UNEXPECTED, stale.details()))
            sys.exit(ExitCode.UNEXPECTED)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the help layout of this group."""
        cmd.context_class = HelpfulContext
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, section by section."""
        in_sections = [name for _, names in SECTIONS for name in names if name in self.commands]
        return in_sections + sorted(set(self.commands) - set(in_sections))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list for each section, all with the same indent."""
        in_sections = {name for _, names in SECTIONS for name in names}
        for title, names in (*SECTIONS, ("Other commands", sorted(set(self.commands) - in_sections))):
            listed = [name for name in names if name in self.commands]
            rows = [(name, self.commands[name].get_short_help_str(limit=100)) for name in listed]
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(f"{name:<12}", text) for name, text in rows])


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
    Exit codes: 0 success, 1 unexpected error, 2 wrong command line,
    3 invalid case, 4 a stage cannot be solved, 5 results cannot be written,
    6 a worker failed, 7 the policy does not fit the case, 8 results are missing
    or incomplete, 9 an optional part is not installed, 130 interrupted,
    143 terminated.
    """
    prefer_system_allocator()


STUDIES = (init, convert, validate, migrate, run, simulate)
OTHER_COMMANDS = (top, report, bound, compare, export, explain, doctor, verify, bench, launch, mcp, version, completion)

for command in (*STUDIES, *OTHER_COMMANDS):
    main.add_command(command)
