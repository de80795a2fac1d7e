"""What the caller of a run sees when a rank fails."""

from cobre.errors import CobreError


class WorkerError(CobreError):
    """A rank failed, and all others were stopped.

    rank: the rank that failed first, not one that failed because of it.
    exit_code: of its process; negative for a signal, as in `subprocess`.
    inner: the rank's own exception where it could be rebuilt here, else None; also the `__cause__`.

    The text names the host and the pid, and holds the rank's own traceback or the signal's name.
    """

    def __init__(self, rank: int, exit_code: int, inner: BaseException | None = None, message: str = "") -> None:
        super().__init__(rank, exit_code, inner, message)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
        self.message = message

    def __str__(self) -> str:
        return self.message or f"rank {self.rank} failed with exit code {self.exit_code}"
