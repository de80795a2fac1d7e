"""`cobre launch`: print a file that makes another program start the ranks of a study."""

import sys
from collections.abc import Callable
from typing import Any

import click

from cobre import __version__
from cobre.cli.error_reporting import ExitCode
from cobre.cli.setting_options import combine_options
from cobre.cli.standard_streams import echo

IMAGE = f"cobre:{__version__}"
DETECT = "auto"
ALIASES = {"kubernetes": "k8s", "kube": "k8s", "docker": "compose", "podman": "compose", "sbatch": "slurm"}


class _GroupWithAliases(click.Group):
    """A group that suggests the name of a command for its usual aliases."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by name; suggest ours for the names of other tools."""
        if args and args[0] in ALIASES and ctx.resilient_parsing is False:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{ALIASES[args[0]]}'?")
        return super().resolve_command(ctx, args)


@click.group(cls=_GroupWithAliases)
def launch() -> None:
    """Print a file that starts a study in containers or on a cluster.

    Options for `cobre run` go after `--`.

    \b
    Examples:
      cobre launch compose --ranks 4 --case ./my_case > compose.yaml
      cobre launch k8s --ranks 8 --image registry/cobre:1 | kubectl apply -f -
      cobre launch slurm --ranks 64 --case my_case --output results \\
          --time 04:00:00 -- --iterations 200 > job.sh
    """


_world_options = combine_options(
    click.option("--ranks", "-n", type=int, required=True, help="Number of processes."),
    click.option("--threads", type=int, default=1, show_default=True, help="Threads per rank."),
    click.option("--name", default="cobre", show_default=True, help="Name of the job."),
    click.argument("run_options", nargs=-1, type=click.UNPROCESSED),
)


_container_options = combine_options(
    click.option("--image", default=IMAGE, show_default=True, help="Container image."),
    click.option("--memory", default="2Gi", show_default=True, help="Memory per rank."),
    click.option("--port", type=int, default=29500, show_default=True, help="Port of rank 0."),
)


@launch.command()
@_world_options
@_container_options
@click.option("--case", default="./case", show_default=True, help="Folder of the case.")
@click.option("--output", default="./output", show_default=True, help="Folder for the results; it must exist.")
def compose(**options: Any) -> None:
    """Print a Compose file with a container for each rank."""
    from cobre.launchfiles.files import compose_file
    from cobre.launchfiles.settings import ContainerSettings

    _print(lambda: compose_file(ContainerSettings(**options)))


@launch.command("k8s")
@_world_options
@_container_options
@click.option("--case", default="cobre-case", show_default=True, help="Claim of the volume that holds the case.")
@click.option("--output", default="cobre-output", show_default=True, help="Claim of the volume for the results.")
@click.option("--jobset", is_flag=True, help="Print a JobSet instead of an Indexed Job.")
def kubernetes(jobset: bool, **options: Any) -> None:
    """Print a Kubernetes manifest.

    It has a new Secret, a Service, a NetworkPolicy and an Indexed Job.
    """
    import secrets

    from cobre.launchfiles.files import job_manifest, jobset_manifest
    from cobre.launchfiles.settings import ContainerSettings

    manifest = jobset_manifest if jobset else job_manifest
    _print(lambda: manifest(ContainerSettings(**options), secrets.token_hex(32)))


@launch.command()
@_world_options
@click.option("--case", default="case", show_default=True, help="Folder of the case, visible to all nodes.")
@click.option("--output", default="output", show_default=True, help="Folder for the results.")
@click.option(
    "--mpi",
    is_flag=False,
    flag_value=DETECT,
    metavar="[TYPE]",
    help="Use the site's MPI instead of tcp. TYPE is that of `srun --mpi`; if omitted, it is detected.",
)
@click.option("--time", "time_limit", default="01:00:00", show_default=True, help="Time limit.")
@click.option("--nodes", type=int, help="Number of nodes.")
@click.option("--partition", help="Partition.")
@click.option("--account", help="Account.")
@click.option("--array", help="A job array, such as 1-8; %a in --case and --output becomes the index of each job.")
@click.option("--requeue", is_flag=True, help="At its time limit, requeue the job, which then resumes.")
def slurm(mpi: str | None, **options: Any) -> None:
    """Print a batch script for Slurm."""
    from cobre.launchfiles.files import mpi_script, tcp_script
    from cobre.launchfiles.settings import SlurmSettings

    settings = SlurmSettings(**options)
    _print(lambda: tcp_script(settings) if mpi is None else mpi_script(settings, None if mpi == DETECT else mpi))


def _print(make: Callable[[], str]) -> None:
    from cobre.launchfiles.settings import LaunchFileError

    try:
        text = make()
    except LaunchFileError as error:
        echo(f"cobre launch: {error}", err=True)
        sys.exit(ExitCode.USAGE)
    click.echo(text, nl=False)
