"""Mutual proof that both ends hold the same secret, without sending it.

Each end picks a fresh nonce. A proof is an HMAC-SHA256 over the role and the transcript, which is everything that both
ends have sent so far: nonces, rank, size, run id, host, pid, the purpose of the connection. Replaying a recorded proof
is useless, because the other end's nonce is new each time; so is reflecting one, because the roles differ.
"""

import hashlib
import hmac
import secrets

from cobre.comm.backends.tcp.wire.handshake_messages import NONCE_BYTES

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
