"""Real containers: the printed compose file on a separate network, and several ranks inside one container."""

import os
import subprocess
import sys

import pytest
from compose_project import ComposeProject
from compose_world import write_secret
from manifests import TWO_RESERVOIRS, cobre
from podman import LIMITS, podman
from studies import summary_digests

RANKS = 3
MANY = 400
NOBODY = 10001
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def laptop_digest(tmp_path_factory):
    """Return the digest after that many iterations on this machine, in one process."""
    folder = tmp_path_factory.mktemp("alone")

    def digest_of_one_process(iterations):
        output = folder / str(iterations)
        if not output.exists():
            flags = ["--iterations", str(iterations), "--workers", "1", "--no-report"]
            command = [sys.executable, "-m", "cobre.cli", "run", TWO_RESERVOIRS, "--output", output, *flags]
            subprocess.run(command, check=True, capture_output=True, timeout=600)
        return summary_digests(output)

    return digest_of_one_process


def compose(folder, image, iterations):
    options = ("--ranks", RANKS, "--image", image, "--memory", "1Gi")
    text = cobre("launch", "compose", *options, "--", "--iterations", iterations, "--checkpoint-every", 20)
    (folder / "compose.yaml").write_text(text)
    write_secret(folder / "cobre-secret")
    for path in (folder / "output", folder / "cobre-secret"):
        os.chown(path, NOBODY, NOBODY)
    return ComposeProject(folder / "compose.yaml", COBRE_UID=NOBODY, COBRE_GID=NOBODY)


def iterations_in(output):
    log = output / "events.jsonl"
    return log.read_text().count('"event":"iteration"') if log.exists() else 0


def test_image_has_no_privileges_and_prints_its_version(image):
    assert podman("run", "--rm", "--read-only", "--cap-drop=ALL", *LIMITS, image, "version").startswith("cobre ")
    assert podman("run", "--rm", "--entrypoint=id", *LIMITS, image, "-u") == str(NOBODY)
    history = podman("history", "--no-trunc", "--format={{.CreatedBy}}", image)
    assert "index-url" not in history, "no layer knows where packages came from"
    assert podman("run", "--rm", "--entrypoint=sh", *LIMITS, image, "-c", "cat /etc/pip.conf || true") == ""


def test_containers_give_digest_of_one_process(folder, image, laptop_digest):
    with compose(folder, image, 5) as project:
        assert project.exit_codes() == dict.fromkeys(project.services, 0), project.logs("rank0")
        assert "3 workers (tcp)" in project.logs("rank0")
    assert summary_digests(folder / "output") == laptop_digest(5)
    assert (folder / "output" / "summary.json").stat().st_uid == NOBODY


def test_run_resumes_after_its_container_is_killed(folder, image, laptop_digest):
    with compose(folder, image, MANY) as project:
        project.wait_until(lambda: iterations_in(folder / "output") >= 25, "25 iterations")
        podman("kill", "--signal=KILL", project.container("rank1"))
        codes = project.exit_codes()
        assert all(codes.values()), codes
        assert "rank 1" in project.logs("rank0")
    before = iterations_in(folder / "output")
    assert before < MANY
    with ComposeProject(folder / "compose.yaml", COBRE_UID=NOBODY, COBRE_GID=NOBODY) as project:
        assert project.exit_codes() == dict.fromkeys(project.services, 0), project.logs("rank0")
    assert summary_digests(folder / "output") == laptop_digest(MANY)


def test_stopped_container_keeps_the_policy_and_resumes(folder, image, laptop_digest):
    """`podman stop` sends SIGTERM, as `docker compose stop` does."""
    with compose(folder, image, MANY) as project:
        project.wait_until(lambda: iterations_in(folder / "output") >= 3, "3 iterations")
        podman("stop", "--time=120", *map(project.container, project.services), limit_s=300)
        assert project.exit_codes() == dict.fromkeys(project.services, 143)
    with ComposeProject(folder / "compose.yaml", COBRE_UID=NOBODY, COBRE_GID=NOBODY) as project:
        assert project.exit_codes() == dict.fromkeys(project.services, 0), project.logs("rank0")
    assert summary_digests(folder / "output") == laptop_digest(MANY)


def run_in_one(folder, image, *options, iterations=5, workers=3):
    os.chown(folder / "output", NOBODY, NOBODY)
    volumes = (f"--volume={folder / 'case'}:/case:ro", f"--volume={folder / 'output'}:/output")
    words = ("run", "/case", "--output", "/output", "--iterations", iterations, "--workers", workers, "--no-report")
    return podman("run", "--rm", *LIMITS, *volumes, *options, image, *words, check=False, limit_s=600)


def test_shm_works_with_64_mb_of_container_memory(folder, image, laptop_digest):
    size = podman("run", "--rm", "--entrypoint=df", *LIMITS, image, "--output=size", "--block-size=1M", "/dev/shm")
    assert size.split()[-1] in ("62", "63", "64"), "the default of containers"
    done = run_in_one(folder, image)
    assert done.returncode == 0, done.stderr
    assert "3 workers on shm" in done.stdout
    assert summary_digests(folder / "output") == laptop_digest(5)


def test_too_little_shared_memory_is_reported_with_a_remedy(folder, image):
    done = run_in_one(folder, image, "--shm-size=100k")
    assert done.returncode in (2, 6), done.stderr
    assert "of shared memory" in done.stderr and "--shm-size" in done.stderr
    assert "Traceback" not in done.stderr
