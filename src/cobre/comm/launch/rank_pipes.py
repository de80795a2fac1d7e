"""The pipes from one rank to its parent: stdout, stderr and, if there is an `on_message`, messages."""

import contextlib
import os

from cobre.comm.launch.output import MESSAGES, Stream


class RankPipes:
    """The reading ends, as streams, stay in this process; the writing ends are closed here once the rank has them.

    has_messages: whether there is a pipe for messages (`send_to_parent`).
    """

    def __init__(self, rank: int, *, has_messages: bool) -> None:
        self.rank = rank
        self.streams: list[Stream] = []
        self.writing: dict[str, int] = {}
        try:
            for name in ("stdout", "stderr", *((MESSAGES,) if has_messages else ())):
                self._open(name)
        except OSError:  # too many open files: close those that were opened, or the error could not even be reported
            self.close()
            raise

    def _open(self, name: str) -> None:
        reading, self.writing[name] = os.pipe()
        self.streams.append(Stream(self.rank, name, reading))

    @property
    def errors(self) -> Stream:
        """The stream of the rank's stderr."""
        return self.streams[1]

    def close_writing_ends(self) -> None:
        """Close this process's copies of the writing ends, once the rank has them.

        As long as any process holds one, reading never reaches end of file, and the rank's death would go unnoticed.
        """
        while self.writing:
            os.close(self.writing.popitem()[1])

    def close(self) -> None:
        """Close all descriptors."""
        self.close_writing_ends()
        while self.streams:
            with contextlib.suppress(OSError):
                os.close(self.streams.pop().descriptor)
