"""`cobre bench`: solve times of the stages on this machine, and an estimate for the whole study."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cobre.cli.error_reporting import report_errors
from cobre.cli.setting_options import CASE, IntegerRange, overrides_of, set_option
from cobre.cli.standard_streams import echo
from cobre.limits import MAX_COUNT
from cobre.text import counted, duration_rounded, size

if TYPE_CHECKING:
    from cobre.study.bench import Benchmark, Estimate, StageCost

USUAL_CORES = (1, 16, 64)
STAGE_HEADINGS = ("stage", "rows", "columns", "forward", "backward", "pivots", "µs/pivot", "active rows", "by HiGHS")
STUDY_HEADINGS = ("cores", "iteration", "training", "simulation", "together")


class WholeNumbers(click.ParamType[tuple[int, ...]]):
    """A list of positive integers separated by commas, such as core counts."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Parse a comma-separated list, such as `1,8,64`; repeated numbers count once."""
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"expected whole numbers of at least 1, separated by commas, got {value!r}", param, ctx)
        return tuple(dict.fromkeys(map(int, parts)))


@click.command()
@click.argument("case", type=CASE)
@click.option(
    "--cores", type=WholeNumbers(), help="Numbers of cores to estimate for. Default: 1, this machine's, 16 and 64."
)
@click.option(
    "--stages",
    type=IntegerRange(min=1),
    help="Number of stages to time in the backward pass, evenly spread. Default: all.",
)
@click.option("--paths", type=IntegerRange(1, MAX_COUNT), default=2, show_default=True, help="Number of paths to time.")
@click.option(
    "--rounds", type=IntegerRange(2, MAX_COUNT), default=3, show_default=True, help="Number of short iterations."
)
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def bench(
    case: Path,
    cores: tuple[int, ...] | None,
    stages: int | None,
    paths: int,
    rounds: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Time the stages of CASE on one core, and estimate the whole study.

    Runs a few short iterations and writes nothing: some paths forward through all stages, then back with all openings.
    It measures CPU time, so other load on the machine hardly matters. The estimate assumes that every solve costs as
    much as in the last short iteration, and leaves out communication and waiting between ranks. A real run takes longer
    as cuts accumulate, for small LPs up to a few times as long; more --rounds capture more of that.

    \b
    Examples:
      cobre bench my_case
      cobre bench my_case --cores 48,96,192 --rounds 5
    """
    with report_errors():
        from cobre.io.case import load_case
        from cobre.study.bench import bench_case

        benchmark = bench_case(load_case(case, overrides_of(options)), stages=stages, paths=paths, rounds=rounds)
    estimates = [benchmark.estimate(count) for count in cores or usual_cores(benchmark.forward_passes)]
    if as_json:
        click.echo(json.dumps(as_dict(benchmark, estimates), indent=1))
    else:
        echo("\n".join(lines(case, benchmark, estimates)))


def usual_cores(forward_passes: int) -> list[int]:
    """Return core counts to estimate for: this machine's and usual ones, up to the number of forward passes."""
    from cobre.comm.cores import usable_cores

    counts = sorted({*USUAL_CORES, usable_cores()})
    return [count for count in counts if count <= max(forward_passes, usable_cores())]


def as_dict(benchmark: "Benchmark", estimates: Sequence["Estimate"]) -> dict[str, Any]:
    """Return the whole benchmark as JSON values."""
    sizes = ("iterations", "forward_passes", "scenarios", "dimension", "paths")
    fields = (*sizes, "bound_s", "cpu_s", "cut_bytes", "state_bytes")
    values = {name: getattr(benchmark, name) for name in fields}
    rounds = [[cost.as_dict() for cost in stages] for stages in benchmark.rounds]
    return values | {"rounds": rounds, "estimates": [estimate.as_dict() for estimate in estimates]}


def lines(case: Path, benchmark: "Benchmark", estimates: Sequence["Estimate"]) -> list[str]:
    """Return lines for the terminal: the sample, a table by stage, and estimates by number of cores."""
    sampled, count = benchmark.sampled, len(benchmark.stages)
    rounds = counted(len(benchmark.rounds), "round")
    return [
        f"{case}: {count} stages, {counted(benchmark.dimension, 'state variable')}",
        f"{len(sampled)} of {count - 1} stages timed backward, {counted(benchmark.paths, 'path')}, {rounds}",
        f"took {duration_rounded(benchmark.cpu_s)} of CPU time on one core, including building the LPs",
        "",
        *table(STAGE_HEADINGS, [stage_row(cost) for cost in sampled]),
        "  forward, backward: CPU milliseconds per solve in the last round; pivots per backward solve",
        "",
        f"{benchmark.iterations} iterations of {benchmark.forward_passes} paths, {benchmark.scenarios} simulated paths",
        *table(STUDY_HEADINGS, [study_row(estimate) for estimate in estimates]),
        "  excludes communication and waiting between ranks, and the growth of the LPs by cuts",
        *memory(benchmark),
    ]


def memory(benchmark: "Benchmark") -> list[str]:
    """Return a line on the memory of cuts and states on each node; it comes on top of the prepared study."""
    if not benchmark.cut_bytes:
        return []
    states = f", {size(benchmark.state_bytes)} of visited states" if benchmark.state_bytes else ""
    return [f"memory on each node after the last iteration: {size(benchmark.cut_bytes)} of cuts{states}"]


def stage_row(cost: "StageCost") -> list[str]:
    """Return the table row of a stage; times are those of one solve."""
    backward = cost.backward
    numbers = (backward.pivots / max(1, backward.solves), cost.cpu_us_per_pivot, backward.mean_active_rows)
    return [
        str(cost.stage),
        str(cost.rows),
        str(cost.columns),
        *("" if seconds is None else f"{1000.0 * seconds:.3g}" for seconds in (cost.forward_s, cost.backward_s)),
        *("" if number is None else f"{number:.3g}" for number in numbers),
        str(backward.library_solves),
    ]


def study_row(estimate: "Estimate") -> list[str]:
    """Return the table row of an estimate; columns are those of `STUDY_HEADINGS`."""
    seconds = (estimate.iteration_s, estimate.training_s, estimate.simulation_s, estimate.total_s)
    return [str(estimate.cores), *map(duration_rounded, seconds)]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns to the right, each as wide as its content."""
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (headings, *rows)
    ]
