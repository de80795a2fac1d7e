"""The printed files validated by schemas and linters of the tools that read them."""

import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from manifests import DEPLOY

VERSIONS = ("1.29", "1.32", "1.35")
TOOLS = Path(sys.executable).parent
# The fields of a JobSet (v1alpha2) that we use; Kubernetes' own schemas do not know it.
JOBSET = {
    "apiVersion": None,
    "kind": None,
    "metadata": {"name": None, "labels": {"app.kubernetes.io/name": None, "app.kubernetes.io/instance": None}},
    "spec": {
        "network": {"enableDNSHostnames": None, "subdomain": None, "publishNotReadyAddresses": None},
        "failurePolicy": {"maxRestarts": None},
        "replicatedJobs": [{"name": None, "replicas": None, "template": None}],
    },
}


def tool(name, *words):
    done = subprocess.run([TOOLS / name, *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def shape(value, known):
    """Replace every text, number and part that `known` does not describe further by None."""
    if isinstance(known, dict):
        return {key: shape(part, known.get(key)) for key, part in value.items()}
    if isinstance(known, list):
        return [shape(part, known[0]) for part in value]
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(version):
    for document in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()):
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_jobset_is_valid(version):
    *around, jobset = yaml.safe_load_all((DEPLOY / "jobset.yaml").read_text())
    for document in around:
        kubernetes_validate.validate(document, version, strict=True)
    assert jobset["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert shape(jobset, JOBSET) == JOBSET
    [replicated] = jobset["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ranks"}, **replicated["template"]}
    kubernetes_validate.validate(job, version, strict=True)


def test_invalid_manifest_is_rejected():
    [job] = [d for d in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()) if d["kind"] == "Job"]
    job["spec"]["completionsMode"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_compose_file_is_valid():
    tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_dockerfile_is_valid():
    tool("hadolint", "--failure-threshold", "style", DEPLOY / "Dockerfile")


@pytest.mark.parametrize("name", ["slurm-mpi.sh", "slurm-tcp.sh"])
def test_scripts_are_valid(name):
    tool("shellcheck", DEPLOY / name)
