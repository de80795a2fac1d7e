"""Kubernetes manifests: an Indexed Job with what it needs, or a JobSet that starts all ranks again together."""

from textwrap import indent

from cobre.launchfiles.filling import fill, quoted, quoted_list
from cobre.launchfiles.settings import ContainerSettings

CASE, OUTPUT = "/case", "/output"
UNUSABLE_SECRET = "replace me"  # noqa: S105 - too short to be accepted: nobody runs with a secret that is public


def job_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """Secret, headless Service, NetworkPolicy and Indexed Job. The index of a pod is its rank."""
    coordinator = f"{settings.name}-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['batch.kubernetes.io/controller-uid']")
    values = {"around": _around(settings, secret), "pod": indent(pod, " " * 6).rstrip(), "port": settings.port}
    return fill("kubernetes.yaml", _world(settings) | values)


def jobset_manifest(settings: ContainerSettings, secret: str = UNUSABLE_SECRET) -> str:
    """The same with a JobSet, which makes the Service itself and starts all ranks again after a failure."""
    coordinator = f"{settings.name}-ranks-0-0.{settings.name}"
    pod = _pod(settings, coordinator, "metadata.labels['jobset.sigs.k8s.io/restart-attempt']")
    values = {"around": _around(settings, secret), "pod": indent(pod, " " * 14).rstrip()}
    return fill("jobset.yaml", _world(settings) | values)


def _world(settings: ContainerSettings) -> dict[str, object]:
    return {"ranks": settings.ranks, "name": settings.name}


def _around(settings: ContainerSettings, secret: str) -> str:
    settings.checked()
    values = {"name": settings.name, "port": settings.port, "secret": quoted(secret)}
    return fill("kubernetes_around.yaml", values)


def _pod(settings: ContainerSettings, coordinator: str, run_id: str) -> str:
    """What runs on each rank; `run_id` tells one attempt from the next, so that a late pod joins nobody else's."""
    values = {
        "image": quoted(settings.image),
        "command": quoted_list(settings.run_command(CASE, OUTPUT)),
        "threads": settings.threads,
        "memory": settings.memory,
        "case": quoted(settings.case),
        "output": quoted(settings.output),
        "port": settings.port,
        "coordinator": coordinator,
        "run_id": run_id,
    }
    return fill("kubernetes_pod.yaml", _world(settings) | values)
