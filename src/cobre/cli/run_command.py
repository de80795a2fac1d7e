"""`cobre run`: one line for each iteration, a summary at the end."""

import json
from pathlib import Path

import click

from cobre.cli.trouble import told
from cobre.comm.backends.local import LocalCommunicator
from cobre.comm.cores import usable_cores
from cobre.sddp.events import IterationRecord

HEADER = (
    f"{'iteration':>9}  {'lower bound $':>20}  {'upper bound $ (sampled)':>24}  {'+- 95 %':>12}  {'cuts':>7}  {'s':>8}"
)


def run_case(case: Path, output: Path, iterations: int | None, threads: int | None, *, as_json: bool) -> None:
    """Run a case in this process."""
    from cobre.study.api import with_iterations
    from cobre.study.run import RunListener, RunRequest, run_study

    request = RunRequest(case, output, threads or usable_cores(), with_iterations(None, iterations))
    listener = RunListener(on_warning=_warn, on_iteration=_tell, on_phase=_announce)
    with told(), LocalCommunicator() as comm:
        summary = run_study(comm, comm, request, listener)
    half = f" +- {summary.upper_bound_half_width:.4g}" if summary.upper_bound_half_width else ""
    click.echo(f"stopped after {summary.iterations} iterations: {summary.stop_reason}")
    click.echo(f"lower bound {summary.lower_bound:.12g} $")
    click.echo(f"upper bound {summary.upper_bound:.6g}{half} $ (mean of the sampled paths of the last iteration)")
    click.echo(f"gap {100 * summary.gap:.3g} % of the lower bound, {summary.training_seconds:.2f} s of training")
    if summary.simulated_scenarios is not None:
        click.echo(
            f"simulated {summary.simulated_scenarios} scenarios: mean {summary.simulated_mean_cost:.10g} $, "
            f"standard deviation {summary.simulated_std_cost:.4g} $"
        )
    click.echo(f"digest {summary.digest}")
    click.echo(f"results in {summary.output}")
    if as_json:
        click.echo(json.dumps(summary.as_dict()))


def _warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


def _announce(phase: str) -> None:
    click.echo(f"{phase} ...")
    if phase == "training":
        click.echo(HEADER)


def _tell(record: IterationRecord) -> None:
    click.echo(
        f"{record.iteration:>9}  {record.lower_bound:>20,.2f}  {record.upper_bound:>24,.2f}  "
        f"{record.half_width:>12,.0f}  {record.cuts:>7}  {record.elapsed_s:>8.2f}"
    )
