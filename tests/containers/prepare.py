"""A base image and the image of Cobre, built on this machine; or the reason why that is impossible.

Nothing is pulled: the base comes from Debian's packages (mmdebstrap), unless COBRE_BASE_IMAGE names one.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from debian_packages import are_installed, install
from podman import LIMITS, podman

import cobre

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("podman", "runc", "netavark", "aardvark-dns", "iptables", "mmdebstrap", "catatonit")
BASE = "localhost/cobre-test-base"
IMAGE = f"localhost/cobre-test:{cobre.__version__}"
# The compiler is in the base, so that the build needs no package server of Debian.
INSIDE = ("python3", "python3-venv", "python3-dev", "g++", "ca-certificates")
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
NO_CACHE = ("--layers=false", "--force-rm")  # leaves only the image
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def main():
    if os.geteuid() != 0:
        return "podman gives containers addresses of their own only when run as root"
    if not are_installed(PACKAGES) and (problem := install(PACKAGES)):
        return problem
    base = os.environ.get("COBRE_BASE_IMAGE") or BASE
    if podman("image", "exists", base, check=False).returncode and (problem := make_base(base)):
        return problem
    return build(base)


def make_base(name):
    """Build a base image with Debian's Python, from the package servers that this machine uses."""
    if name != BASE:
        return f"there is no image {name} (COBRE_BASE_IMAGE)"
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    with tempfile.TemporaryDirectory(prefix="cobre-base-") as folder:
        archive = Path(folder, "base.tar")
        words = ["mmdebstrap", "--variant=minbase", f"--include={','.join(INSIDE)}", suite, str(archive)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode:
            return f"mmdebstrap failed: {done.stderr.strip()[-2000:]}"
        podman("import", archive, name, limit_s=900)
    return None


def build(base):
    """Build the image of this source; pip's own settings reach the build, but no layer of the image."""
    with tempfile.TemporaryDirectory(prefix="cobre-pip-") as folder:
        settings, folders = pip_settings()
        file = Path(folder, "pip.conf")
        file.write_text(settings)
        volumes = [f"--volume={path}:{path}:ro" for path in folders]
        options = ["--build-arg", f"BASE={base}", "--secret", f"id=pip.conf,src={file}", "--network=host", *volumes]
        words = ["build", *NO_CACHE, *LIMITS, *options, "--file", DOCKERFILE, "--tag", IMAGE, ROOT]
        done = podman(*words, check=False, limit_s=3600)
    return None if done.returncode == 0 else f"podman build failed:\n{(done.stdout + done.stderr)[-4000:]}"


def pip_settings():
    """Write pip's settings on this machine to a file; return it with the folders that pip reads packages from."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    settings = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip("'\"")
    paths = {urlsplit(word).path for value in settings.values() for word in value.split()} | {CERTIFICATES}
    # The pages of an index (".../simple") point to files next to it.
    paths = {path.removesuffix("/simple") for path in paths}
    folders = sorted(path for path in paths if path.startswith("/") and Path(path).exists())
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()), folders


if __name__ == "__main__":
    sys.exit(f"no containers here: {reason}" if (reason := main()) else 0)
