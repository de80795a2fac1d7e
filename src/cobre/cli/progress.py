"""What a run tells, as lines for a person or a log."""

import click

from cobre.study.events import Event

HEADER = (
    f"{'iteration':>9}  {'lower bound $':>20}  {'upper bound $ (sampled)':>24}  {'+- 95 %':>12}  {'cuts':>7}  {'s':>8}"
)


class LineProgress:
    """One line for each iteration."""

    def __init__(self) -> None:
        self.has_spoken = False
        """Whether this process is the one that shows the run."""

    def tell(self, told: Event) -> None:
        """Show an event."""
        self.has_spoken = True
        match told["event"]:
            case "warning":
                click.echo(f"warning: {told['message']}", err=True)
            case "run_started":
                threads = f"{told['threads']} thread{'s' * (told['threads'] > 1)}"
                ranks = f"{told['ranks']} workers ({told['backend']}), {threads} each" if told["ranks"] > 1 else threads
                click.echo(f"cobre {told['version']}: {told['case']}, {ranks}")
            case "phase":
                self._announce(told["name"])
            case "iteration":
                click.echo(_line(told))

    def _announce(self, phase: str) -> None:
        click.echo(f"{phase} ...")
        if phase == "training":
            click.echo(HEADER)


def _line(told: Event) -> str:
    return (
        f"{told['iteration']:>9}  {told['lower_bound']:>20,.2f}  {told['upper_bound']:>24,.2f}  "
        f"{told['half_width']:>12,.0f}  {told['cuts']:>7}  {told['elapsed_s']:>8.2f}"
    )
