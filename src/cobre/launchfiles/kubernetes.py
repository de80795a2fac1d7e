"""Kubernetes manifests: an Indexed Job with what it needs, or a JobSet that starts all ranks again together."""

from textwrap import indent

from cobre.launchfiles.filling import Verbatim, fill_yaml
from cobre.launchfiles.settings import ContainerSettings, check_claim

CASE, OUTPUT = "/case", "/output"
UNUSABLE_SECRET = "replace me"  # noqa: S105 - too short to be accepted: nobody runs with a secret that is public


def job_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Secret, headless Service, NetworkPolicy and Indexed Job. The index of a pod is its rank."""
    coordinator = f"{settings.name}-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['batch.kubernetes.io/controller-uid']")
    values = {"around": _around(settings, secret), "pod": _indented(pod, 6), "port": settings.port}
    return fill_yaml("kubernetes.yaml", _world(settings) | values)


def jobset_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """The same with a JobSet, which makes the Service itself and starts all ranks again after a failure."""
    coordinator = f"{settings.name}-ranks-0-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['jobset.sigs.k8s.io/restart-attempt']")
    values = {"around": _around(settings, secret), "pod": _indented(pod, 14)}
    return fill_yaml("jobset.yaml", _world(settings) | values)


def _indented(text: str, spaces: int) -> Verbatim:
    return Verbatim(indent(text, " " * spaces).rstrip())


def _world(settings: ContainerSettings) -> dict[str, object]:
    """The name twice: as a value, and as the comments have it, which a name that was checked cannot leave."""
    return {"ranks": settings.ranks, "name": settings.name, "label": Verbatim(settings.name)}


def _around(settings: ContainerSettings, secret: str) -> Verbatim:
    values = {
        "name": settings.name,
        "secret_name": _secret_name(settings),
        "port": settings.port,
        "secret": secret,
    }
    return Verbatim(fill_yaml("kubernetes_around.yaml", values))


def _secret_name(settings: ContainerSettings) -> str:
    return f"{settings.name}-secret"


def _pod(settings: ContainerSettings, coordinator: str, run_id: str) -> str:
    """What runs on each rank; `run_id` tells one attempt from the next, so that a late pod joins nobody else's."""
    settings.checked()
    values = {
        "image": settings.image,
        "command": [_literal(word) for word in settings.run_command(CASE, OUTPUT)],
        "threads": settings.threads,
        "memory": settings.memory,
        "case": check_claim("--case", settings.case),
        "output": check_claim("--output", settings.output),
        "port": settings.port,
        "port_text": str(settings.port),
        "ranks_text": str(settings.ranks),
        "secret_name": _secret_name(settings),
        "coordinator": coordinator,
        "run_id": run_id,
    }
    return fill_yaml("kubernetes_pod.yaml", values)


def _literal(word: str) -> str:
    return word.replace("$", "$$")  # Kubernetes would put variables in the place of $(NAME)
