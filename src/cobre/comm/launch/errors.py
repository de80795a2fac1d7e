"""The exception that `launch.run` raises when a rank fails."""

from typing import Any

from cobre.errors import CobreError, error_details


class WorkerError(CobreError):
    """A rank failed, and all others were stopped.

    rank: the rank that failed first, not one that failed as a consequence.
    exit_code: that of its process; negative for a signal, as in `subprocess`.
    inner: the rank's own exception if it could be unpickled here, else None; also the `__cause__`.

    The text names the host and the pid, and contains the rank's own traceback, or the name of the signal.
    """

    remedy = "look at the rank's own error in the message; a run with checkpoints can be resumed"

    def __init__(self, rank: int, exit_code: int, inner: BaseException | None = None, message: str = "") -> None:
        super().__init__(rank, exit_code, inner, message)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
        self.message = message

    def details(self) -> dict[str, Any]:
        """Also `rank`, `worker_exit_code`, and the details of the rank's own error as `inner` (None: unknown)."""
        inner = None if self.inner is None else error_details(self.inner)
        return super().details() | {"rank": self.rank, "worker_exit_code": self.exit_code, "inner": inner}

    def __str__(self) -> str:
        return self.message or f"rank {self.rank} failed with exit code {self.exit_code}"
