"""`cobre run`: start the study where it belongs, show what it tells, sum it up."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from cobre.cli.exit_codes import ExitCode
from cobre.cli.progress import LineProgress
from cobre.cli.trouble import told
from cobre.study.run import RunSummary


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What the command line says."""

    case: Path
    output: Path
    iterations: int | None
    workers: int | None
    backend: str
    threads: int | None
    resume: bool
    warm_start: Path | None
    time_limit_s: float | None
    checkpoint_every: int | None
    as_json: bool


def run_case(flags: RunFlags) -> None:
    """Run a case; in a world with several ranks only rank 0 speaks."""
    from cobre.study.api import with_iterations
    from cobre.study.ranks import CaseRequest
    from cobre.study.run import RunRequest, run_study
    from cobre.study.worlds import choose_world, run_in, threads_per_worker

    with told():
        world = choose_world(flags.backend, flags.workers)
        threads = threads_per_worker(world, flags.threads)
        request = RunRequest(
            CaseRequest(flags.case, with_iterations(None, flags.iterations), threads),
            flags.output,
            resume=flags.resume,
            warm_start=flags.warm_start,
            time_limit_s=flags.time_limit_s,
            checkpoint_every=flags.checkpoint_every,
        )
        progress = LineProgress()
        summary = run_in(world, run_study, (request,), progress.tell)[0]
        if progress.has_spoken:
            show_summary(summary, as_json=flags.as_json)
        if summary.is_interrupted and "time limit" not in summary.stop_reason:
            sys.exit(ExitCode.INTERRUPTED if "Ctrl-C" in summary.stop_reason else ExitCode.TERMINATED)


def show_summary(summary: RunSummary, *, as_json: bool) -> None:
    """The last lines of a run."""
    click.echo(f"stopped after {summary.iterations} iterations: {summary.stop_reason}")
    click.echo(f"lower bound {summary.lower_bound:.12g} $")
    half = f" +- {summary.upper_bound_half_width:.4g}" if summary.upper_bound_half_width else ""
    click.echo(f"upper bound {summary.upper_bound:.6g}{half} $ (mean of the sampled paths of the last iteration)")
    if summary.gap is not None:
        click.echo(f"gap {100 * summary.gap:.3g} % of the lower bound, {summary.training_seconds:.2f} s of training")
    if len(summary.workers) > 1:
        waited = [100 * report.waiting_s / max(report.wall_s, 1e-9) for report in summary.workers]
        click.echo(f"{len(waited)} workers by {summary.workers[0].backend}, waiting {max(waited):.1f} % at most")
    if summary.simulated_scenarios is not None:
        click.echo(
            f"simulated {summary.simulated_scenarios} scenarios: mean {summary.simulated_mean_cost:.10g} $, "
            f"standard deviation {summary.simulated_std_cost:.4g} $"
        )
    if summary.is_interrupted:
        click.echo("the policy so far was kept; the same command with --resume goes on from here")
    click.echo(f"digest {summary.digest}")
    click.echo(f"results in {summary.output}")
    if as_json:
        click.echo(json.dumps(summary.as_dict()))
