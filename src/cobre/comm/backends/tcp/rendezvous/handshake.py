"""The handshake in which two processes authenticate each other: bytes in, bytes out, no sockets.

    worker       HELLO      who I am, my nonce; and a mark, by which the coordinator prefers me to strangers
    coordinator  CHALLENGE  who I am, my nonce
    worker       PROOF      that I hold the secret
    coordinator  WELCOME    proof that I hold it too; you are accepted
                 REFUSED    or why not, at any point; after PROOF it carries the coordinator's own proof

Versions are compared before anything else, so that the error names the difference. A refusal without a proof may come
from any process that listens at the coordinator's address, and does not end the worker's attempts.
"""

import hashlib
import hmac
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from cobre import __version__
from cobre.comm.backends.tcp.wire.messages import NONCE_BYTES, PROTOCOL_VERSION, Challenge, Hello, Link, VersionError
from cobre.comm.backends.tcp.wire.protocol import (
    HANDSHAKE_LIMITS,
    MAX_REFUSAL_BYTES,
    MAX_UNAUTHENTICATED_BYTES,
    PROOF_BYTES,
    FieldReader,
    FrameParser,
    ProtocolError,
    Tag,
    frame,
    pack_text,
)
from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailedError, Peer
from cobre.text import printable

HANDSHAKE_S = 5.0  # for one handshake, at either end; then the connection is dropped
COORDINATOR_TAGS: Mapping[int, int] = {tag: HANDSHAKE_LIMITS[tag] for tag in (Tag.HELLO, Tag.PROOF)}
WORKER_TAGS: Mapping[int, int] = {
    tag: HANDSHAKE_LIMITS[tag] for tag in (Tag.CHALLENGE, Tag.WELCOME, Tag.REFUSED, Tag.START)
}


class RefusedError(Exception):
    """A connection was refused. `may_retry`: another attempt may succeed, or the refusal is not authenticated."""

    def __init__(self, text: str, *, may_retry: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.may_retry = may_retry

    @property
    def sent_text(self) -> str:
        """The text as the wire carries it, truncated to MAX_REFUSAL_BYTES; the proof covers this one."""
        return FieldReader(pack_text(self.text, MAX_REFUSAL_BYTES)).text(MAX_REFUSAL_BYTES)

    def frame(self, proof: bytes = bytes(PROOF_BYTES)) -> bytes:
        """Return the REFUSED frame; without a proof its place holds zeros."""
        return frame(Tag.REFUSED, bytes([self.may_retry]) + pack_text(self.text, MAX_REFUSAL_BYTES) + proof)


class UnprovenRefusalError(RefusedError):
    """A refusal without a valid proof: neither its sender nor its text can be trusted."""

    def __init__(self, text: str) -> None:
        super().__init__(text, may_retry=True)


def parse_refusal(payload: bytes) -> tuple[RefusedError, bytes]:
    """Parse a REFUSED frame: the refusal, and its proof, which the caller must verify."""
    reader = FieldReader(payload)
    may_retry, text = reader.take(1) != b"\0", reader.text(MAX_REFUSAL_BYTES)
    proof = reader.take(PROOF_BYTES)
    reader.end()
    return RefusedError(text, may_retry=may_retry), proof


class CoordinatorHandshake:
    """The coordinator's end: pass what arrives to `receive`, send what that returns, until `is_authenticated`."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._parser = FrameParser(COORDINATOR_TAGS)
        self._received = 0
        self._hello = self._challenge = b""
        self.hello: Hello | None = None
        self.mark: bytes | None = None
        """The mark of the HELLO, if valid: its sender holds the secret, or replays a message of a rank that does."""
        self.is_authenticated = False

    @property
    def needed(self) -> int:
        """Number of bytes that may be read from the socket now."""
        return self._parser.needed

    def receive(self, data: bytes) -> bytes:
        """Handle bytes that have arrived and return the reply; raises `RefusedError` or `ProtocolError`."""
        # Counted over all frames: with limits per frame only, a stranger could send many.
        self._received += len(data)
        if self._received > MAX_UNAUTHENTICATED_BYTES:
            raise ProtocolError(f"more than {MAX_UNAUTHENTICATED_BYTES} bytes before PROOF")
        return b"".join(self._reply(tag, payload) for tag, payload in self._parser.feed(data))

    def welcome(self) -> bytes:
        """Return the WELCOME frame with the coordinator's own proof, for a rank that has been accepted."""
        return frame(Tag.WELCOME, prove(self._secret, COORDINATOR_LABEL, self._hello, self._challenge))

    def refusal(self, error: RefusedError) -> bytes:
        """Return the REFUSED frame.

        Only authenticated workers get a proof: a stranger could use it to guess the secret.
        """
        if not self.is_authenticated:
            return error.frame()
        role = refusal_role(error.sent_text)
        return error.frame(prove(self._secret, role, self._hello, self._challenge))

    def _reply(self, tag: Tag, payload: bytes) -> bytes:
        if tag is Tag.HELLO and self.hello is None:
            return self._handle_hello(payload)
        if tag is Tag.PROOF and self.hello is not None and not self.is_authenticated:
            self._handle_proof(payload, self.hello)
            return b""
        raise ProtocolError(f"{tag.name} out of order")

    def _handle_hello(self, payload: bytes) -> bytes:
        # Versions before the proof, which another version may compute differently: a wrong secret would be reported.
        content, mark = payload[:-PROOF_BYTES], payload[-PROOF_BYTES:]
        try:
            hello = Hello.parse(content)
        except VersionError as error:
            raise RefusedError(
                f"the worker speaks protocol version {error.version}, the coordinator version {PROTOCOL_VERSION}; "
                "install the same version of cobre on all hosts"
            ) from error
        _check_versions(hello)
        # A wrong mark is not refused; a wrong proof is, with a message that names the difference.
        if hmac.compare_digest(mark, first_message_mark(self._secret, content)):
            self.mark = mark
        me = Peer.of_this_process(0)
        self.hello, self._hello = hello, payload
        self._challenge = Challenge(new_nonce(), me.host, me.pid, __version__).pack()
        return frame(Tag.CHALLENGE, self._challenge)

    def _handle_proof(self, proof: bytes, hello: Hello) -> None:
        # Over the bytes as they were sent, not over what was parsed from them: nothing in them can be exchanged.
        if not is_proven(proof, self._secret, WORKER, self._hello, self._challenge):
            hint = "" if self._secret else "; the coordinator has none"
            raise RefusedError(
                f"the secret of {name_of(hello)} differs from the coordinator's{hint} "
                "(COBRE_TCP_SECRET_FILE, COBRE_TCP_SECRET)"
            )
        self.is_authenticated = True


def _check_versions(hello: Hello) -> None:
    if hello.package_version != __version__:
        raise RefusedError(
            f"{name_of(hello)} runs cobre {printable(hello.package_version, lines=False)}, "
            f"the coordinator runs {__version__}; install the same version on all hosts"
        )
    # Payloads are sent in native byte order and never converted.
    if hello.byte_order != sys.byteorder:
        raise RefusedError(
            f"{name_of(hello)} is {printable(hello.byte_order)}-endian, the coordinator is {sys.byteorder}-endian"
        )


def name_of(hello: Hello) -> str:
    """Name the sender of a HELLO for messages; what a stranger sent is made safe to print."""
    return str(Peer(hello.rank, printable(hello.host, lines=False), hello.pid))


class WorkerHandshake:
    """A worker's end: send `begin`, then pass what arrives to `receive`, until `is_welcome` and then `has_started`."""

    def __init__(self, rank: int, size: int, run_id: str, secret: bytes, link: Link, instance: bytes) -> None:
        me = Peer.of_this_process(rank)
        hello = Hello(rank, size, run_id, me.host, me.pid, __version__, sys.byteorder, link, instance, new_nonce())
        self._secret = secret
        self._hello = hello.pack() + first_message_mark(secret, hello.pack())
        self._challenge = b""
        self._parser = FrameParser(WORKER_TAGS)
        self.coordinator: Peer | None = None
        self.is_welcome = False
        self.has_started = False

    @property
    def needed(self) -> int:
        """Number of bytes that may be read from the socket now; what follows the handshake is left to the transport."""
        return self._parser.needed

    def begin(self) -> bytes:
        """Return the HELLO frame, which the worker sends first."""
        return frame(Tag.HELLO, self._hello)

    def receive(self, data: bytes) -> bytes:
        """Handle bytes that have arrived and return the reply; raises `RefusedError` or `ProtocolError`."""
        return b"".join(self._reply(tag, payload) for tag, payload in self._parser.feed(data))

    def _reply(self, tag: Tag, payload: bytes) -> bytes:
        if tag is Tag.REFUSED:
            raise self._refused(payload)
        if tag is Tag.CHALLENGE and self.coordinator is None:
            return self._handle_challenge(payload)
        if tag is Tag.WELCOME and self.coordinator is not None and not self.is_welcome:
            self._handle_welcome(payload)
        elif tag is Tag.START and self.is_welcome and not self.has_started:
            self.has_started = True
        else:
            raise ProtocolError(f"{tag.name} out of order")
        return b""

    def _refused(self, payload: bytes) -> RefusedError:
        """Return the coordinator's refusal, or an unproven one if its proof is not valid."""
        refusal, proof = parse_refusal(payload)
        role = refusal_role(refusal.text)
        # After WELCOME the connection itself is authenticated: only the coordinator can write to it.
        if self.is_welcome or (self._challenge and is_proven(proof, self._secret, role, self._hello, self._challenge)):
            return refusal
        return UnprovenRefusalError(refusal.text)

    def _handle_challenge(self, payload: bytes) -> bytes:
        challenge = Challenge.parse(payload)
        # Nothing has been proved at this point. A stranger may have replied, so the worker may try again.
        if challenge.package_version != __version__:
            peer_version = printable(challenge.package_version, lines=False)
            raise RefusedError(
                f"the coordinator runs cobre {peer_version}, this rank runs {__version__}", may_retry=True
            )
        self.coordinator = Peer(0, challenge.host, challenge.pid)
        self._challenge = payload
        return frame(Tag.PROOF, prove(self._secret, WORKER, self._hello, payload))

    def _handle_welcome(self, proof: bytes) -> None:
        # Both ends prove themselves: a worker must not send its data to a process that took over the address.
        if not is_proven(proof, self._secret, COORDINATOR_LABEL, self._hello, self._challenge):
            raise RefusedError("the process that listens there does not hold this rank's secret", may_retry=True)
        self.is_welcome = True


# Mutual proof that both ends hold the same secret, without sending it.
#
# Each end picks a fresh nonce. A proof is an HMAC-SHA256 over the role and the transcript, which is everything that
# both ends have sent so far: nonces, rank, size, run id, host, pid, the purpose of the connection. Replaying a recorded
# proof is useless, because the other end's nonce is new each time; so is reflecting one, because the roles differ.

WORKER = b"cobre tcp worker"
COORDINATOR_LABEL = b"cobre tcp coordinator"
REFUSAL = b"cobre tcp refusal"
MARK = b"cobre tcp first message"


def new_nonce() -> bytes:
    """Return fresh random bytes for one handshake."""
    return secrets.token_bytes(NONCE_BYTES)


def prove(secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bytes:
    """Compute the proof for this role in this handshake; only a holder of the secret can."""
    # Hashes of both messages, because their length is fixed: no byte can be shifted from one message to the other.
    transcript = hashlib.sha256(hello).digest() + hashlib.sha256(challenge).digest()
    return hmac.digest(secret, role + b"\0" + transcript, "sha256")


def first_message_mark(secret: bytes, hello: bytes) -> bytes:
    """Compute the mark that a worker adds to its HELLO.

    Only a holder of the secret can compute it, but any eavesdropper can replay it, so it proves nothing. It tells the
    coordinator which connections to keep when strangers make too many.
    """
    return prove(secret, MARK, hello, b"")


def refusal_role(text: str) -> bytes:
    """Return the role of a coordinator that refuses with this text, which the proof thereby authenticates."""
    return REFUSAL + b"\0" + hashlib.sha256(text.encode()).digest()


def is_proven(proof: bytes, secret: bytes, role: bytes, hello: bytes, challenge: bytes) -> bool:
    """Return whether the proof is valid; compares in constant time."""
    return hmac.compare_digest(proof, prove(secret, role, hello, challenge))


# Loads the shared secret. It is never logged, never part of an error, and never on a command line.

MAX_SECRET_BYTES = 4096
MIN_SECRET_BYTES = 16


def load_secret(config: TcpConfig) -> bytes:
    """Return the secret of the run: from the file if one is named, else from the variable, else empty.

    Raises `InitializationFailedError` for a file that cannot be read or that other users can, and for a secret that is
    too short or too long.
    """
    if config.secret_file:
        return _check_secret(_read_secret(config.secret_file), f"COBRE_TCP_SECRET_FILE={config.secret_file}")
    if config.secret:
        return _check_secret(config.secret.encode(), "COBRE_TCP_SECRET")
    return b""


def _read_secret(path: str) -> bytes:
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


def _check_secret(secret: bytes, source: str) -> bytes:
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise InitializationFailedError(
            "tcp",
            f"{source} holds a secret of {len(secret)} bytes, expected {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}; to "
            "generate one: python -c 'import secrets; print(secrets.token_hex(32))'",
        )
    return secret
