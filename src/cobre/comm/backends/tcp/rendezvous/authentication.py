"""Proof that both sides hold the same secret, without sending it.

Each side picks a fresh nonce. A proof is an HMAC-SHA256 over the role and the transcript, which is everything that
both sides have said so far: nonces, rank, size, run id, host, pid, the purpose of the connection. A recorded proof is
useless: the other side's nonce is new each time. A reflected one is useless: the roles differ.
"""

import hashlib
import hmac
import secrets

from cobre.comm.backends.tcp.protocol import NONCE_BYTES

WORKER = b"cobre tcp worker"
COORDINATOR = b"cobre tcp coordinator"
REFUSAL = b"cobre tcp refusal"
PROOF_BYTES = 32


def new_nonce() -> bytes:
    """Random bytes that were never used before."""
    return secrets.token_bytes(NONCE_BYTES)


def prove(secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bytes:
    """What only a holder of the secret can compute for this role in this conversation."""
    transcript = hashlib.sha256(hello).digest() + hashlib.sha256(challenge).digest()
    return hmac.digest(secret, role + b"\0" + transcript, "sha256")


def refusal_role(text: str) -> bytes:
    """The role of a coordinator that refuses, with these words."""
    return REFUSAL + b"\0" + hashlib.sha256(text.encode()).digest()


def is_proven(proof: bytes, secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bool:
    """Whether the proof is right; takes the same time for every wrong one."""
    return hmac.compare_digest(proof, prove(secret, role, hello, challenge))
