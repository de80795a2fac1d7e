"""A compose file: one service for each rank, on a network of their own."""

from cobre.launchfiles.filling import fill, quoted, quoted_list
from cobre.launchfiles.settings import ContainerSettings

CASE, OUTPUT = "/case", "/output"


def compose_file(settings: ContainerSettings) -> str:
    """The text of compose.yaml."""
    settings.checked()
    return fill(
        "compose.yaml",
        {
            "ranks": settings.ranks,
            "name": settings.name,
            "image": _literal(settings.image),
            "command": _literal_list(settings.run_command(CASE, OUTPUT)),
            "threads": settings.threads,
            "memory": _bytes(settings.memory),
            "case": _literal(settings.case),
            "output": _literal(settings.output),
            "port": settings.port,
            "services": "".join(fill("compose_rank.yaml", {"rank": rank}) for rank in range(settings.ranks)),
        },
    )


def _literal(text: str) -> str:
    return quoted(text.replace("$", "$$"))  # compose would put variables in its place


def _literal_list(words: list[str]) -> str:
    return quoted_list([word.replace("$", "$$") for word in words])


def _bytes(quantity: str) -> str:
    """Compose writes 2g where Kubernetes writes 2Gi; both mean powers of 1024."""
    return quantity.removesuffix("i").lower()
