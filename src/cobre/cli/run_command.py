"""`cobre run` and `cobre simulate`: start the study where it belongs, show what it tells, sum it up."""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import click

from cobre.cli.error_reporting import mark_errors_of_rank, report_errors
from cobre.cli.exit_codes import ExitCode
from cobre.cli.progress import Progress, choose_progress
from cobre.cli.run_summary import print_summary, write_report
from cobre.cli.say import say_json
from cobre.cli.standard_streams import output_is_talk
from cobre.comm import Backend
from cobre.comm.detection import find_launch
from cobre.printable import printable
from cobre.runs.events import EventListener
from cobre.runs.summary import RunSummary
from cobre.sddp.stop import StopKind
from cobre.study.placement import World, choose_world, run_in, threads_per_worker
from cobre.study.rank_entry import run_study
from cobre.study.requests import CaseRequest, RunRequest, with_iterations
from cobre.study.work_size import is_tree, pieces_of_work

_SIGNALLED = {StopKind.INTERRUPTED: ExitCode.INTERRUPTED, StopKind.TERMINATED: ExitCode.TERMINATED}


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What the command line says."""

    case: Path
    output: Path
    overrides: Mapping[str, Any] | None
    workers: int | None
    backend: str
    threads: int | None
    resume: bool = False
    auto_resume: bool = False
    warm_start: Path | None = None
    time_limit_s: float | None = None
    checkpoint_every: int | None = None
    checkpoint_minutes: float | None = None
    overwrite: bool = False
    plain: bool = False
    quiet: bool = False
    no_report: bool = False
    as_json: bool = False

    @classmethod
    def of(cls, case: Path, options: Mapping[str, Any]) -> Self:
        """Of `cobre run`."""
        return cls(
            case=case,
            output=options["output"] or default_output(case),
            overrides=with_iterations(None, options["iterations"]),
            time_limit_s=options["time_limit"],
            **_same_names(options, but=("case", "output", "overrides", "time_limit_s")),
        )

    @classmethod
    def of_simulation(cls, case: Path, options: Mapping[str, Any]) -> Self:
        """Of `cobre simulate`: the same run without training."""
        overrides: dict[str, Any] = {"training.enabled": False, "simulation.enabled": True}
        if options["scenarios"] is not None:
            overrides["simulation.selection"] = {"method": "sampled", "num_scenarios": options["scenarios"]}
        return cls(
            case=case,
            overrides=overrides,
            warm_start=options["policy"],
            **_same_names(options, but=("case", "overrides", "warm_start")),
        )


def default_output(case: Path) -> Path:
    """Inside the case; a case from somebody else does not decide by a link where that is."""
    output = case / "output"
    if output.is_symlink():
        target = printable(os.fspath(output.readlink()), most=200)
        raise click.UsageError(f"{output} is a symbolic link to {target}: say where results go with --output")
    return output


def _same_names(options: Mapping[str, Any], but: tuple[str, ...]) -> dict[str, Any]:
    names = {item.name for item in fields(RunFlags)} - set(but)
    return {name: value for name, value in options.items() if name in names}


def run_case(flags: RunFlags) -> None:
    """Run a case; in a world with several ranks only rank 0 speaks."""
    stream = sys.stderr if flags.as_json else sys.stdout
    if not flags.as_json:
        output_is_talk()
    with report_errors():
        progress = choose_progress(plain=flags.plain, quiet=flags.quiet, stream=stream)
        with closing(progress):
            summary = _run(flags, progress)
        if progress.has_spoken:
            _sum_up(flags, summary, progress)
        if summary.stop_kind in _SIGNALLED and (progress.has_spoken or not _ends_with_others()):
            sys.exit(_SIGNALLED[summary.stop_kind])


def _ends_with_others() -> bool:
    """Whether a launcher ends all ranks when one fails: rank 0, which still writes its report, then speaks for all."""
    return find_launch(os.environ) is not None


def _run(flags: RunFlags, progress: Progress) -> RunSummary:
    world = _world(flags)
    request = RunRequest(
        CaseRequest(flags.case, flags.overrides, threads_per_worker(world, flags.threads)),
        flags.output,
        resume=flags.resume,
        resume_if_possible=flags.auto_resume,
        warm_start=flags.warm_start,
        time_limit_s=flags.time_limit_s,
        checkpoint_every=flags.checkpoint_every,
        checkpoint_seconds=None if flags.checkpoint_minutes is None else 60.0 * flags.checkpoint_minutes,
        overwrite=flags.overwrite,
    )
    if not world.is_joined:
        progress.expect(str(flags.case))
    return run_in(world, _study_of_rank if world.is_joined else run_study, (request,), progress.emit)[0]


def _study_of_rank(comm: Backend, request: RunRequest, emit: EventListener) -> RunSummary:
    with mark_errors_of_rank(comm):
        return run_study(comm, request, emit)


def _world(flags: RunFlags) -> World:
    """As asked for; where the number of workers is ours to choose, none is started that would have nothing to do.

    Nodes of a tree are solved one by one: threads share its leaves only, workers the nodes of every stage.
    """
    world = choose_world(flags.backend, flags.workers, threads_suffice=not is_tree(flags.case, flags.overrides))
    pieces = pieces_of_work(flags.case, flags.overrides)
    if flags.workers is None and world.size is not None and pieces is not None and pieces < world.size:
        return choose_world(flags.backend, pieces)
    return world


def _sum_up(flags: RunFlags, summary: RunSummary, progress: Progress) -> None:
    report = None if flags.no_report else write_report(flags.output)
    if not flags.quiet:
        stream = sys.stderr if flags.as_json else sys.stdout
        print_summary(summary, report, stream, with_bounds=not progress.has_shown_bounds)
    if flags.as_json:
        say_json(summary.as_dict() | {"report": None if report is None else str(report)})
