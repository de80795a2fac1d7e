"""A compose file: one service for each rank, on a network of their own."""

import shlex

from cobre.launchfiles.filling import Verbatim, fill_yaml
from cobre.launchfiles.settings import ContainerSettings, as_path

CASE, OUTPUT = "/case", "/output"


def compose_file(settings: ContainerSettings) -> str:
    """The text of compose.yaml."""
    settings.checked()
    return fill_yaml(
        "compose.yaml",
        {
            "ranks": settings.ranks,
            "ranks_text": str(settings.ranks),
            "name": settings.name,
            "image": _literal(settings.image),
            "command": [_literal(word) for word in settings.run_command(CASE, OUTPUT)],
            "threads": settings.threads,
            "memory": _bytes(settings.memory),
            "case": _literal(settings.case),
            "output": _literal(settings.output),
            "mkdir": Verbatim(shlex.quote(as_path(settings.output))),
            "port_text": str(settings.port),
            "services": Verbatim("".join(_service(rank) for rank in range(settings.ranks))),
        },
    )


def _service(rank: int) -> str:
    return fill_yaml("compose_rank.yaml", {"rank": rank, "rank_text": str(rank)})


def _literal(text: str) -> str:
    return text.replace("$", "$$")  # compose would put variables in its place


def _bytes(quantity: str) -> str:
    """Compose writes 2g where Kubernetes writes 2Gi; both mean powers of 1024."""
    return quantity.removesuffix("i").lower()
