"""`cobre bound`: is the policy as good as the lower bound says, under the risk measure of the study?"""

from pathlib import Path
from typing import Any, get_args

import click

from cobre.cli.echo import echo, echo_json
from cobre.cli.error_reporting import report_errors
from cobre.cli.finite_range import FiniteRange
from cobre.cli.run_path import CASE, RunPath
from cobre.cli.study_commands import world_options
from cobre.core.bound_methods import DEFAULT_CONFIDENCE, DEFAULT_MAX_NODES, DEFAULT_PATHS, BoundMethod, BoundMethodName
from cobre.limits import MAX_COUNT


@click.command()
@click.argument("folder", metavar="CASE|RUN", type=RunPath())
@click.option("--policy", "-p", type=RunPath(), help="A policy file, or the folder of one or of a run.")
@click.option("--case", "moved_to", type=CASE, help="Where the case of RUN is now, if it has moved.")
@click.option(
    "--method",
    type=click.Choice(get_args(BoundMethodName)),
    default=BoundMethod.AUTO.value,
    show_default=True,
    help="Method; see above.",
)
@click.option(
    "--paths",
    type=click.IntRange(2, MAX_COUNT),
    default=DEFAULT_PATHS,
    show_default=True,
    help="Number of sampled paths.",
)
@click.option(
    "--confidence",
    type=FiniteRange(min=0.0, max=1.0, min_open=True, max_open=True),
    default=DEFAULT_CONFIDENCE,
    show_default=True,
    help="Confidence level of a sampled estimate.",
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_NODES,
    show_default=True,
    help="Largest number of tree nodes to enumerate.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of the sampled paths.")
@world_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def bound(folder: Path, policy: Path | None, moved_to: Path | None, as_json: bool, **options: Any) -> None:
    """Compute an upper bound for a policy, or estimate its cost, under its risk measure.

    RUN is the output directory of a run. With a CASE, give its policy (--policy), unless CASE/output holds one. The
    result is written to the run's bound.json and shown in its report.

    If the case has changed since training the command stops with an error: bounds of another problem would be wrong.

    \b
    Methods:
      enumeration  the policy on every path of the opening tree: its exact cost
      inner        inner approximation of the cost-to-go: deterministic, for few state variables
      sampled      paths drawn by the weights of the risk measure: an estimate and its confidence;
                   under a risk measure it comes from below, and is not a bound
      auto         the first of these that the size of the study allows

    \b
    Examples:
      cobre bound results
      cobre bound results --method sampled --paths 1000
      cobre bound my_case --policy results/policy --json
    """
    from cobre.runs.events import Event
    from cobre.study.inspection.bound import bound_in, bound_plan, bound_request
    from cobre.study.placement import WorldRequest, script_placement

    if policy is not None and moved_to is not None:
        raise click.UsageError("--case says where the case of a RUN is; with --policy give the case itself as CASE")
    events: list[Event] = []
    with report_errors():
        placement = script_placement(WorldRequest(options["backend"], options["workers"], options["threads"]))
        plan = bound_plan(*(options[name] for name in ("method", "paths", "confidence", "max_nodes", "seed")))
        request = bound_request(folder, policy, plan, placement.threads, moved_to)
        found = bound_in(placement, request, events.append)
    if events:  # of several ranks the first one speaks
        echo_json(found.as_dict()) if as_json else echo(found)
