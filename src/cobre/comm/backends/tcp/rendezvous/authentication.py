"""Mutual proof that both ends hold the same secret, without sending it.

Each end picks a fresh nonce. A proof is an HMAC-SHA256 over the role and the transcript, which is everything that both
ends have sent so far: nonces, rank, size, run id, host, pid, the purpose of the connection. Replaying a recorded proof
is useless, because the other end's nonce is new each time; so is reflecting one, because the roles differ.
"""

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from cobre.comm.backends.tcp.wire.messages import NONCE_BYTES
from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailedError

WORKER = b"cobre tcp worker"

COORDINATOR = b"cobre tcp coordinator"

REFUSAL = b"cobre tcp refusal"

MARK = b"cobre tcp first message"


def new_nonce() -> bytes:
    """Fresh random bytes for one handshake."""
    return secrets.token_bytes(NONCE_BYTES)


def prove(secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bytes:
    """The proof for this role in this handshake; only a holder of the secret can compute it."""
    # Hashes of both messages, whose length is fixed: no byte can be shifted from one message to the other.
    transcript = hashlib.sha256(hello).digest() + hashlib.sha256(challenge).digest()
    return hmac.digest(secret, role + b"\0" + transcript, "sha256")


def mark(secret: bytes, hello: bytes) -> bytes:
    """The mark that a worker adds to its HELLO: only a holder of the secret can compute it, but anybody can replay it.

    It proves nothing. It tells the coordinator which connections to keep when strangers make too many.
    """
    return prove(secret, MARK, hello, b"")


def refusal_role(text: str) -> bytes:
    """The role of a coordinator that refuses with this text, which the proof thereby authenticates."""
    return REFUSAL + b"\0" + hashlib.sha256(text.encode()).digest()


def is_proven(proof: bytes, secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bool:
    """Whether the proof is valid; a constant-time comparison."""
    return hmac.compare_digest(proof, prove(secret, role, hello, challenge))


# Loads the shared secret. It is never logged, never part of an error, and never on a command line.


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
