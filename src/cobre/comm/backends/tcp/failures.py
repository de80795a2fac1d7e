"""From what went wrong on the wire to the errors of the contract."""

import errno

from cobre.comm.backends.tcp.protocol import FailureKind, Verdict
from cobre.comm.errors import (
    AbortedError,
    CollectiveFailedError,
    MismatchedCallError,
    PeerLostError,
    PeerTimeoutError,
)
from cobre.comm.types import Operation

ERRORS: dict[FailureKind, type[CollectiveFailedError]] = {
    FailureKind.DIED: PeerLostError,
    FailureKind.LEFT: PeerLostError,
    FailureKind.SILENT: PeerTimeoutError,
    FailureKind.OVERDUE: PeerTimeoutError,
    FailureKind.ABORTED: AbortedError,
    FailureKind.MISMATCH: MismatchedCallError,
}
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)


class WorldFailedError(Exception):
    """A collective cannot complete, because the world has failed; the verdict says why. Internal to this backend."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


def error_of(verdict: Verdict, operation: Operation, sequence: int) -> CollectiveFailedError:
    """The contract's error for a verdict."""
    return ERRORS[verdict.kind](operation.title, 0, _text_of(verdict), sequence, verdict.culprits)


def _text_of(verdict: Verdict) -> str:
    if verdict.kind is FailureKind.MISMATCH:
        return f"ranks made different calls: {verdict.text}"
    if verdict.kind is FailureKind.ABORTED:
        return f"aborted by {verdict.text}" if verdict.text else "aborted"
    names = "; ".join(map(str, verdict.culprits))
    if verdict.kind is FailureKind.OVERDUE and verdict.text:
        return f"{names} (waited {verdict.text}, the limit for one operation)"
    return names


def is_unreachable(error: OSError | None) -> bool:
    """Whether the kernel gave up on the way to the peer, rather than hearing from it that it is gone."""
    return error is not None and error.errno in UNREACHABLE
