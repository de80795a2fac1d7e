"""`cobre launch` prints the files of deploy/, fills in its options, and rejects settings that would not run."""

import shlex
import subprocess

import pytest
import yaml
from manifests import DEPLOY, cobre, documents, pod_template

import cobre as package
from cobre.launchfiles.files import UNUSABLE_SECRET, printed_files


@pytest.mark.parametrize("name", sorted(printed_files()))
def test_files_in_deploy_equal_the_printed_ones(name):
    text = (DEPLOY / name).read_text()
    assert text == printed_files()[name], "run: python -m cobre.launchfiles.files deploy"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["compose"], "compose.yaml"),
        (["slurm"], "slurm-tcp.sh"),
        (["slurm", "--mpi"], "slurm-mpi.sh"),
    ],
)
def test_command_prints_files_in_deploy(words, name):
    assert cobre("launch", *words, "--ranks", 4) == (DEPLOY / name).read_text()


@pytest.mark.parametrize(("words", "name"), [([], "kubernetes.yaml"), (["--jobset"], "jobset.yaml")])
def test_manifest_has_a_new_secret_each_time(words, name):
    texts = [cobre("launch", "k8s", "--ranks", 4, *words) for _ in range(2)]
    secrets = [documents(text)["Secret"]["stringData"]["secret"] for text in texts]
    assert len(set(secrets)) == 2
    assert all(len(secret) == 64 for secret in secrets)
    stored = (DEPLOY / name).read_text()
    assert all(text.replace(secret, UNUSABLE_SECRET) == stored for text, secret in zip(texts, secrets, strict=True))


def test_image_and_dockerfile_have_current_version():
    tag = f"cobre:{package.__version__}"
    assert f"-t {tag} ." in (DEPLOY / "Dockerfile").read_text()
    for name in ("compose.yaml", "kubernetes.yaml", "jobset.yaml"):
        assert f'image: "{tag}"' in (DEPLOY / name).read_text()


def test_awkward_texts_are_quoted():
    """Quotes, dollars, colons and hashes in a path are part of the path."""
    path = """./it's "my" case: #1 ${HOME} {x} @name@"""
    study = yaml.safe_load(cobre("launch", "compose", "--ranks", 2, "--case", path, "--output", path))
    for service in study["services"].values():
        assert [volume["source"] for volume in service["volumes"]] == [path.replace("$", "$$")] * 2
    script = cobre("launch", "slurm", "--ranks", 2, "--case", path, "--", "--iterations", 5)
    command = shlex.split(script.splitlines()[-2].removesuffix(" || code=$?"))
    assert command == [
        "cobre",
        "run",
        path,
        "--output",
        "output",
        "--auto-resume",
        "--threads",
        "1",
        "--iterations",
        "5",
    ]


AWKWARD_NAMES = ["true", "no", "on", "null", "y", "e1"]


@pytest.mark.parametrize("name", AWKWARD_NAMES)
@pytest.mark.parametrize("words", [["k8s"], ["k8s", "--jobset"]])
def test_yaml_keywords_are_quoted(words, name):
    """Compare all texts that contain `study` with those for this name."""
    plain, odd = (cobre("launch", *words, "--ranks", 2, "--name", one, "--case", one) for one in ("study", name))
    expected = [with_name(leaf, name) for leaf in leaves(list(yaml.safe_load_all(plain))) if not is_secret(leaf)]
    assert [leaf for leaf in leaves(list(yaml.safe_load_all(odd))) if not is_secret(leaf)] == expected


def is_secret(leaf):
    return isinstance(leaf, str) and len(leaf) == 64


def with_name(leaf, name):
    return leaf.replace("study", name) if isinstance(leaf, str) else leaf


def leaves(node):
    if isinstance(node, dict):
        return [leaf for value in node.values() for leaf in leaves(value)]
    if isinstance(node, list):
        return [leaf for value in node for leaf in leaves(value)]
    return [node]


@pytest.mark.parametrize("text", [*AWKWARD_NAMES, "~", "123", "1e3", "0x10", "- a", "2024-01-01"])
def test_compose_values_are_strings(text):
    name = text if text in AWKWARD_NAMES else "study"
    options = ["--name", name, "--case", text, "--output", text, "--image", name, "--memory", "512"]
    study = yaml.safe_load(cobre("launch", "compose", "--ranks", 1, *options, "--", "--iterations", text))
    service = study["services"]["rank0"]
    assert (study["name"], service["image"], service["mem_limit"]) == (name, name, "512")
    assert [volume["source"] for volume in service["volumes"]] == [text, text]
    assert service["command"][-1] == text


def test_dollars_are_escaped_for_kubernetes():
    kinds = documents(cobre("launch", "k8s", "--ranks", 1, "--", "--warm-start", "$(HOME)"))
    assert pod_template(kinds)["spec"]["containers"][0]["args"][-1] == "$$(HOME)"


@pytest.mark.parametrize(("path", "printed"), [("-x", "./-x"), ("--help", "./--help"), ("x", "x")])
def test_path_with_leading_dash_is_not_an_option(path, printed):
    for words in (["slurm"], ["slurm", "--mpi"]):
        script = cobre("launch", *words, "--ranks", 2, "--case", path, "--output", path)
        assert shlex.split(script.splitlines()[-2])[:5] == ["cobre", "run", printed, "--output", printed]


def test_job_array_has_an_index_in_its_paths():
    words = ["slurm", "--ranks", 2, "--array", "1-8%2", "--case", "my cases/%a", "--output", "%a/$x"]
    script = cobre("launch", *words)
    assert "#SBATCH --array=1-8%2\n" in script
    command = script.splitlines()[-2].removesuffix(" || code=$?").replace("cobre", "printf '%s|'", 1)
    done = subprocess.run(
        ["sh", "-c", command], check=True, capture_output=True, text=True, env={"SLURM_ARRAY_TASK_ID": "7"}, timeout=60
    )
    assert done.stdout == "run|my cases/7|--output|7/$x|--auto-resume|--threads|1|"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--array", "1-8"], "--output must have %a in it"),
        (["--array", "1..8", "--output", "%a"], "--array must be indices such as"),
        (["--mpi", "pmi 2"], "--mpi must be a name"),
    ],
)
def test_invalid_slurm_options_are_rejected(words, message):
    done = cobre("launch", "slurm", "--ranks", 2, *words, check=False)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_job_is_requeued_only_on_request():
    assert "scontrol requeue" not in cobre("launch", "slurm", "--ranks", 2)
    assert "scontrol requeue" in cobre("launch", "slurm", "--ranks", 2, "--requeue")


@pytest.mark.parametrize("output", ["./results", "two words", "-o", "it's"])
def test_compose_comment_creates_the_folder_that_it_uses(output, tmp_path):
    text = cobre("launch", "compose", "--ranks", 2, "--output", output)
    [line] = [line for line in text.splitlines() if "mkdir" in line]
    subprocess.run(["sh", "-c", line.lstrip("# ")], check=True, cwd=tmp_path, timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == [output.removeprefix("./")]


def test_options_reach_the_manifest():
    options = ["--ranks", 8, "--threads", 2, "--name", "study", "--image", "host:5000/cobre:2", "--memory", "512Mi"]
    kinds = documents(cobre("launch", "k8s", *options, "--case", "c", "--output", "o", "--", "--iterations", 5))
    assert {kind: kinds[kind]["metadata"]["name"] for kind in ("Job", "Service", "NetworkPolicy")} == dict.fromkeys(
        ("Job", "Service", "NetworkPolicy"), "study"
    )
    assert kinds["Job"]["spec"]["completions"] == kinds["Job"]["spec"]["parallelism"] == 8
    [container] = pod_template(kinds)["spec"]["containers"]
    assert container["image"] == "host:5000/cobre:2"
    assert container["args"][-4:] == ["--threads", "2", "--iterations", "5"]
    assert container["resources"]["limits"] == {"cpu": 2, "memory": "512Mi"}
    claims = [
        volume.get("persistentVolumeClaim", {}).get("claimName") for volume in pod_template(kinds)["spec"]["volumes"]
    ]
    assert claims[:2] == ["c", "o"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compose", "--ranks", 0], "--ranks must be from 1 to 1024, got 0"),
        (["compose", "--ranks", 2, "--threads", 0], "--threads must be from 1"),
        (["compose", "--ranks", 2, "--threads", 1025], "--threads must be from 1 to 1024, got 1025"),
        (["compose", "--ranks", 2, "--port", 80], "--port must be from 1024 to 65535, got 80"),
        (["compose", "--ranks", 2, "--image", "a b"], "--image must be registry/name:tag; got 'a b'"),
        (["compose", "--ranks", 2, "--memory", "lots"], "--memory must be a number of bytes such as 512Mi"),
        (["compose", "--ranks", 2, "--case", "two\nlines"], "--case must be a text on one line"),
        (["k8s", "--ranks", 2, "--name", "My_Study"], "--name must be lower-case letters"),
        (["k8s", "--ranks", 2, "--name", "123"], "with a letter first and no '-' last"),
        (["k8s", "--ranks", 2, "--name", "study-"], "with a letter first and no '-' last"),
        (["k8s", "--ranks", 2, "--case", "./case"], "--case must be the name of a volume claim"),
        (["k8s", "--ranks", 2, "--output", "a" * 254], "--output has 254 characters; a volume claim has at most 253"),
        (["k8s", "--ranks", 2, "--name", "a" * 41], "has 41 characters; at most 40"),
        (["slurm", "--ranks", 2, "--time", "soon"], "--time must be HH:MM:SS"),
        (["slurm", "--ranks", 2, "--nodes", 3], "--nodes must be from 1 to 2, got 3"),
        (["slurm", "--ranks", 2, "--partition", "a b"], "--partition must be a name without spaces"),
    ],
)
def test_invalid_options_are_rejected(words, message):
    done = cobre("launch", *words, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not done.stdout
