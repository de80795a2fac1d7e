"""The environment of the pods of a manifest, and whether their ranks form a world."""

import re
import socket

import pytest
import yaml
from manifests import DEPLOY, documents, pod_template

from cobre.comm import TcpConfig
from cobre.comm.backends.tcp.rendezvous.handshake import load_secret
from cobre.comm.errors import InitializationFailedError
from cobre.comm.factory import select_backend
from cobre.launchfiles.files import UNUSABLE_SECRET

NAMES = ("kubernetes.yaml", "jobset.yaml")
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def metadata(index):
    """Write on a pod what the Job and JobSet controllers do."""
    return {
        INDEX: str(index),
        "metadata.labels['batch.kubernetes.io/controller-uid']": "0d9b3f2c-0000-4000-8000-000000000001",
        "metadata.labels['jobset.sigs.k8s.io/restart-attempt']": "1",
    }


def environment(template, index):
    [container] = template["spec"]["containers"]
    fields = metadata(index)
    return {
        entry["name"]: entry["value"] if "value" in entry else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        for entry in container["env"]
    }


@pytest.fixture(params=NAMES)
def kinds(request):
    return documents((DEPLOY / request.param).read_text())


def test_every_pod_is_a_rank_of_one_world(kinds):
    template = pod_template(kinds)
    configs = []
    for index in range(4):
        config, _ = select_backend(None, environment(template, index))
        assert isinstance(config, TcpConfig)
        configs.append(config)
    assert [config.rank for config in configs] == [0, 1, 2, 3]
    assert {(config.size, config.coordinator, config.port, config.run_id) for config in configs} == {
        (4, configs[0].coordinator, 29500, configs[0].run_id)
    }
    assert configs[0].run_id


def test_coordinator_is_the_name_of_the_first_pod(kinds):
    coordinator = environment(pod_template(kinds), 0)["COBRE_TCP_COORDINATOR"]
    if "Job" in kinds:
        job, service = kinds["Job"]["metadata"]["name"], kinds["Service"]["metadata"]["name"]
        assert coordinator == f"{job}-0.{service}"
        assert pod_template(kinds)["spec"]["subdomain"] == service
        assert kinds["Service"]["spec"]["clusterIP"] == "None"
    else:
        jobset = kinds["JobSet"]
        [replicated] = jobset["spec"]["replicatedJobs"]
        subdomain = jobset["spec"]["network"]["subdomain"]
        assert coordinator == f"{jobset['metadata']['name']}-{replicated['name']}-0-0.{subdomain}"


def test_labels_select_the_pods(kinds):
    labels = pod_template(kinds)["metadata"]["labels"]
    policy = kinds["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert [rule["from"] for rule in policy["ingress"]] == [[{"podSelector": {"matchLabels": labels}}]]
    if "Service" in kinds:
        assert kinds["Service"]["spec"]["selector"] == labels


def test_network_policy_allows_only_ranks_and_name_resolution(kinds):
    port = int(environment(pod_template(kinds), 0)["COBRE_TCP_PORT"])
    policy = kinds["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [rule["ports"] for rule in policy["ingress"]] == [[{"protocol": "TCP", "port": port}]]
    ranks, names = policy["egress"]
    assert ranks["ports"] == [{"protocol": "TCP", "port": port}]
    assert {(entry["protocol"], entry["port"]) for entry in names["ports"]} == {("UDP", 53), ("TCP", 53)}


def test_secret_is_mounted_where_ranks_read_it_with_an_accepted_mode(kinds, tmp_path):
    spec = pod_template(kinds)["spec"]
    [volume] = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert volume["secretName"] == kinds["Secret"]["metadata"]["name"]
    [mount] = [m["mountPath"] for m in spec["containers"][0]["volumeMounts"] if m["name"] == "secret"]
    file = environment(pod_template(kinds), 0)["COBRE_TCP_SECRET_FILE"]
    [key] = kinds["Secret"]["stringData"]
    assert file == f"{mount}/{key}"
    mounted = tmp_path / key
    mounted.write_text("0123456789abcdef")
    mounted.chmod(volume["defaultMode"])
    config = TcpConfig(coordinator="localhost", rank=0, size=1, secret_file=str(mounted))
    assert load_secret(config) == b"0123456789abcdef"


def test_secret_of_manifest_in_repository_is_rejected(kinds, tmp_path):
    """Applied unchanged, it gives an error, not a run that any process could join."""
    assert kinds["Secret"]["stringData"]["secret"] == UNUSABLE_SECRET
    file = tmp_path / "secret"
    file.write_text(UNUSABLE_SECRET)
    file.chmod(0o400)
    with pytest.raises(InitializationFailedError, match="holds a secret of 10 bytes"):
        load_secret(TcpConfig(coordinator=socket.gethostname(), rank=0, size=2, secret_file=str(file)))


def test_pods_have_no_rights(kinds):
    spec = pod_template(kinds)["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    user = f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"
    assert re.findall(r"^USER (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE) == [user]
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not spec["automountServiceAccountToken"]


def test_one_failure_ends_the_job():
    """A single rank that starts again could not join the others."""
    job = documents((DEPLOY / "kubernetes.yaml").read_text())["Job"]["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    [jobset] = [d for d in yaml.safe_load_all((DEPLOY / "jobset.yaml").read_text()) if d["kind"] == "JobSet"]
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] == 0
