"""An end in plain words: for an error that a person can act on, where a traceback would only be in the way.

A program marks such an error before it leaves the `with` block of its communicator. A backend that cannot tell the
other ranks of a failure otherwise (MPI) then lets one rank say it for all, and gives the job its exit code.
"""

from dataclasses import dataclass

_ATTRIBUTE = "_cobre_plain_end"


@dataclass(frozen=True, slots=True)
class PlainEnd:
    """What to say, and the exit code.

    origin: whose words they are, where it is not clear from who says them.
    is_agreed: all ranks end by it, and know; one of them says it, and the others have nothing to say.
    """

    message: str
    exit_code: int
    origin: str = ""
    is_agreed: bool = False

    @property
    def words(self) -> str:
        """The message, with its origin in front."""
        return f"{self.origin}: {self.message}" if self.origin and self.message else self.message


def mark(error: BaseException, end: PlainEnd) -> None:
    """Let the error end its process, or its job, in these words."""
    setattr(error, _ATTRIBUTE, end)


def plain_end(error: BaseException | None) -> PlainEnd | None:
    """What the error was marked with; None: nobody expected it, and its traceback is wanted."""
    end = getattr(error, _ATTRIBUTE, None)
    return end if isinstance(end, PlainEnd) else None
