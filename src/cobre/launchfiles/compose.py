"""A compose file: one service for each rank, on a private network."""

import shlex

from cobre.launchfiles.filling import Verbatim, escape_dollars, fill_yaml
from cobre.launchfiles.settings import CASE_MOUNT, OUTPUT_MOUNT, ContainerSettings, as_path


def compose_file(settings: ContainerSettings) -> str:
    """The text of compose.yaml."""
    settings.checked()
    return fill_yaml(
        "compose.yaml",
        {
            "ranks": settings.ranks,
            "ranks_text": str(settings.ranks),
            "name": settings.name,
            "image": escape_dollars(settings.image),
            "command": [escape_dollars(word) for word in settings.run_command(CASE_MOUNT, OUTPUT_MOUNT)],
            "threads": settings.threads,
            "memory": _bytes(settings.memory),
            "case": escape_dollars(settings.case),
            "output": escape_dollars(settings.output),
            "mkdir": Verbatim(shlex.quote(as_path(settings.output))),
            "port_text": str(settings.port),
            "services": Verbatim("".join(_service(rank) for rank in range(settings.ranks))),
        },
    )


def _service(rank: int) -> str:
    return fill_yaml("compose_rank.yaml", {"rank": rank, "rank_text": str(rank)})


def _bytes(quantity: str) -> str:
    """Compose writes 2g where Kubernetes writes 2Gi; both mean powers of 1024."""
    return quantity.removesuffix("i").lower()
