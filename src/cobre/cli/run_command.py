"""`cobre run` and `cobre simulate`: start the study where it belongs, show its progress, print its summary."""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import click

from cobre.cli.error_reporting import ExitCode, mark_errors_of_rank, report_errors
from cobre.cli.progress import Progress, choose_progress
from cobre.cli.run_summary import print_summary, write_report
from cobre.cli.setting_options import overrides_of
from cobre.cli.standard_streams import echo_json, mark_output_as_optional
from cobre.comm import Backend
from cobre.comm.detection import find_launch
from cobre.core.stopping import StopKind
from cobre.records import dataclass
from cobre.runs.events import EventListener
from cobre.runs.files import OUTPUT
from cobre.runs.summary import RunSummary
from cobre.study.config_outline import ConfigOutline, with_config_document
from cobre.study.placement import WorldRequest, command_placement, run_in
from cobre.study.ranks.entry import run_study
from cobre.study.requests import CaseRequest, RunRequest, TrainingRequest
from cobre.wording import printable

_SIGNALLED = {StopKind.INTERRUPTED: ExitCode.INTERRUPTED, StopKind.TERMINATED: ExitCode.TERMINATED}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A request and how the command carries it out: with which workers, and what it prints."""

    request: RunRequest
    world: WorldRequest
    plain: bool = False
    quiet: bool = False
    no_report: bool = False
    as_json: bool = False

    @classmethod
    def of(cls, case: Path, options: Mapping[str, Any]) -> Self:
        """From the command line of `cobre run`."""
        minutes = options["checkpoint_minutes"]
        training = TrainingRequest(
            resume=options["resume"],
            resume_if_possible=options["auto_resume"],
            warm_start=options["warm_start"],
            time_limit_s=options["time_limit"],
            checkpoint_every=options["checkpoint_every"],
            checkpoint_seconds=None if minutes is None else 60.0 * minutes,
        )
        source = CaseRequest(case, overrides_of(options) or None, use_cache=not options["no_cache"])
        output = options["output"] or default_output(case)
        return cls._of(RunRequest(source, output, training, options["overwrite"]), options)

    @classmethod
    def of_simulation(cls, case: Path, options: Mapping[str, Any]) -> Self:
        """From the command line of `cobre simulate`: a run without training."""
        overrides = {"training.enabled": False, "simulation.enabled": True, **overrides_of(options)}
        training = TrainingRequest(warm_start=options["policy"])
        source = CaseRequest(case, overrides)
        return cls._of(RunRequest(source, options["output"], training, options["overwrite"]), options)

    @classmethod
    def _of(cls, request: RunRequest, options: Mapping[str, Any]) -> Self:
        world = WorldRequest(options["backend"], options["workers"], options["threads"])
        return cls(request, world, *(options[name] for name in ("plain", "quiet", "no_report", "as_json")))


def default_output(case: Path) -> Path:
    """`output` inside the case directory.

    Refused where that is a symbolic link, which the case's author would control.
    """
    output = case / OUTPUT
    if output.is_symlink():
        target = printable(os.fspath(output.readlink()), max_length=200)
        raise click.UsageError(f"{output} is a symbolic link to {target}: choose another directory with --output")
    return output


def run_case(options: RunOptions) -> None:
    """Run a case; in a world with several ranks only rank 0 prints."""
    stream = sys.stderr if options.as_json else sys.stdout
    if not options.as_json:
        mark_output_as_optional()
    with report_errors():
        progress = choose_progress(plain=options.plain, quiet=options.quiet, stream=stream)
        with closing(progress):
            summary = _run(options, progress)
        if progress.has_events:
            _sum_up(options, summary, progress)
        if summary.stop_kind in _SIGNALLED and (progress.has_events or not _ends_with_others()):
            sys.exit(_SIGNALLED[summary.stop_kind])


def _ends_with_others() -> bool:
    """Whether a launcher ends all ranks when one exits with an error; rank 0's exit code then stands for all."""
    return find_launch(os.environ) is not None


def _run(options: RunOptions, progress: Progress) -> RunSummary:
    source = with_config_document(options.request.case)
    placement = command_placement(options.world, ConfigOutline.of(source))
    source = replace(source, threads=placement.threads)
    request = replace(options.request, case=source, split_reason=placement.reason)
    if not placement.is_joined:
        progress.expect(str(source.case))
    function = _study_of_rank if placement.is_joined else run_study
    return run_in(placement, function, (request,), progress.emit)[0]


def _study_of_rank(comm: Backend, request: RunRequest, emit: EventListener) -> RunSummary:
    with mark_errors_of_rank(comm):
        return run_study(comm, request, emit)


def _sum_up(options: RunOptions, summary: RunSummary, progress: Progress) -> None:
    report = None if options.no_report else write_report(options.request.output)
    if not options.quiet:
        stream = sys.stderr if options.as_json else sys.stdout
        print_summary(summary, report, stream, with_bounds=not progress.has_shown_bounds)
    if options.as_json:
        echo_json(summary.as_dict() | {"report": None if report is None else str(report)})
