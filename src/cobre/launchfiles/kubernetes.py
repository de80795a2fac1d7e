"""Kubernetes manifests: an Indexed Job with what it needs, or a JobSet, which restarts all ranks together."""

from textwrap import indent

from cobre.launchfiles.filling import Verbatim, escape_dollars, fill_yaml
from cobre.launchfiles.settings import CASE_MOUNT, OUTPUT_MOUNT, ContainerSettings, check_claim

UNUSABLE_SECRET = "replace me"  # noqa: S105 - too short to be accepted: nobody runs with a secret that is public


def job_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Secret, headless Service, NetworkPolicy and Indexed Job. The index of a pod is its rank."""
    coordinator = f"{settings.name}-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['batch.kubernetes.io/controller-uid']")
    values = {"prerequisites": _prerequisites(settings, secret), "pod": _indented(pod, 6), "port": settings.port}
    return fill_yaml("kubernetes.yaml", _world(settings) | values)


def jobset_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Secret, NetworkPolicy and a JobSet, which creates the Service itself and restarts all ranks after a failure."""
    coordinator = f"{settings.name}-ranks-0-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['jobset.sigs.k8s.io/restart-attempt']")
    values = {"prerequisites": _prerequisites(settings, secret), "pod": _indented(pod, 14)}
    return fill_yaml("jobset.yaml", _world(settings) | values)


def _indented(text: str, spaces: int) -> Verbatim:
    return Verbatim(indent(text, " " * spaces).rstrip())


def _world(settings: ContainerSettings) -> dict[str, object]:
    """What both manifests begin with. label: the name without quotes, for comments; `checked` allows no line break."""
    return {"ranks": settings.ranks, "name": settings.name, "label": Verbatim(settings.name)}


def _prerequisites(settings: ContainerSettings, secret: str) -> Verbatim:
    """The Secret, and the NetworkPolicy that admits ranks of this job only."""
    values = {
        "name": settings.name,
        "secret_name": _secret_name(settings),
        "port": settings.port,
        "secret": secret,
    }
    return Verbatim(fill_yaml("kubernetes_prerequisites.yaml", values))


def _secret_name(settings: ContainerSettings) -> str:
    return f"{settings.name}-secret"


def _pod(settings: ContainerSettings, coordinator: str, run_id: str) -> str:
    """The pod of a rank. run_id: the field that differs between attempts, so that a late pod joins no other attempt."""
    settings.checked()
    values = {
        "image": settings.image,
        "command": [escape_dollars(word) for word in settings.run_command(CASE_MOUNT, OUTPUT_MOUNT)],
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
