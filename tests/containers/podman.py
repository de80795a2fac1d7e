"""Podman with settings that work everywhere: runc, no systemd, limits that need no further rights."""

import subprocess

GLOBAL = ("podman", "--cgroup-manager=cgroupfs", "--runtime=runc")
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")


def podman(*words, check=True, limit_s=120, **options):
    """Run podman; return its output, or the whole outcome when `check` is off."""
    command = [*GLOBAL, *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=limit_s, **options)
    if not check:
        return done
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout.strip()
