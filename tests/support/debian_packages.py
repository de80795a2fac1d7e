"""Debian packages that some tests need: whether they are installed, and how they get installed."""

import os
import shutil
import subprocess
from collections.abc import Sequence

APT = ("apt-get", "--quiet=2", "--option", "Dpkg::Use-Pty=0")


def are_installed(packages: Sequence[str]) -> bool:
    """Return whether all packages are installed; False if this is not Debian."""
    if shutil.which("dpkg-query") is None:
        return False
    words = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ", *packages]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.stdout.split() == ["installed"] * len(packages)


def install(packages: Sequence[str]) -> str | None:
    """Install packages; return why that is impossible, or None."""
    if shutil.which("apt-get") is None:
        return f"this is not Debian, whose packages it takes: {', '.join(packages)}"
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--yes", "--no-install-recommends", *packages)):
        done = subprocess.run([*APT, *words], check=False, capture_output=True, text=True, env=environ)
        if done.returncode:
            return f"apt-get {words[0]} failed: {(done.stderr or done.stdout).strip()}"
    return None
