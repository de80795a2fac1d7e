"""Loads the shared secret. It is never logged, never part of an error, and never on a command line."""

import os
import stat
from pathlib import Path

from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailedError

MAX_SECRET_BYTES = 4096
MIN_SECRET_BYTES = 16


def load_secret(config: TcpConfig) -> bytes:
    """The secret of the run: from the file if one is named, else from the variable, else empty.

    Raises `InitializationFailedError` for a file that cannot be read or that other users can, and for a secret that is
    too short or too long.
    """
    if config.secret_file:
        return _check(_read(config.secret_file), f"COBRE_TCP_SECRET_FILE={config.secret_file}")
    if config.secret:
        return _check(config.secret.encode(), "COBRE_TCP_SECRET")
    return b""


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            # Checked on the open file, not on its name, which may refer to another file a moment later.
            _check_permissions(path, os.fstat(file.fileno()))
            return file.read(MAX_SECRET_BYTES + 1).strip()
    except OSError as error:
        raise InitializationFailedError(
            "tcp", f"cannot read the secret file {path} (COBRE_TCP_SECRET_FILE): {os.strerror(error.errno or 0)}"
        ) from error


def _check_permissions(path: str, status: os.stat_result) -> None:
    if stat.S_ISFIFO(status.st_mode):
        return  # an inherited pipe has no path that others could open
    if not stat.S_ISREG(status.st_mode):
        raise InitializationFailedError("tcp", f"the secret file {path} is not a regular file")
    if status.st_uid not in (os.geteuid(), 0):
        raise InitializationFailedError("tcp", f"the secret file {path} belongs to user {status.st_uid}, not to you")
    # Group-readable is allowed, because Kubernetes mounts secrets that way.
    if status.st_mode & (stat.S_IWGRP | stat.S_IRWXO):
        raise InitializationFailedError(
            "tcp",
            f"the secret file {path} has mode {stat.S_IMODE(status.st_mode):04o}, so other users can read or change "
            f"it: chmod 600 {path}",
        )


def _check(secret: bytes, source: str) -> bytes:
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise InitializationFailedError(
            "tcp",
            f"{source} holds a secret of {len(secret)} bytes, expected {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}; to "
            "generate one: python -c 'import secrets; print(secrets.token_hex(32))'",
        )
    return secret
