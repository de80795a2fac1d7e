"""The pipes through which one rank speaks to its parent: stdout, stderr and, where somebody listens, messages."""

import contextlib
import os

from cobre.comm.launch.output import MESSAGES, Stream


class RankPipes:
    """The reading ends stay here as streams; the writing ends are the rank's, and are closed here once it has them."""

    def __init__(self, rank: int, *, listens: bool) -> None:
        self.rank = rank
        self.streams: list[Stream] = []
        self.writing: dict[str, int] = {}
        try:
            for name in ("stdout", "stderr", *((MESSAGES,) if listens else ())):
                self._open(name)
        except OSError:
            self.close()
            raise

    def _open(self, name: str) -> None:
        reading, self.writing[name] = os.pipe()
        self.streams.append(Stream(self.rank, name, reading))

    @property
    def errors(self) -> Stream:
        """What comes from stderr."""
        return self.streams[1]

    def close_writing_ends(self) -> None:
        """Close the writing ends here, once the rank has them.

        As long as any process holds one, reading never comes to end of file: the rank's death would go unnoticed here.
        """
        while self.writing:
            os.close(self.writing.popitem()[1])

    def close(self) -> None:
        """Give all descriptors back."""
        self.close_writing_ends()
        while self.streams:
            with contextlib.suppress(OSError):
                os.close(self.streams.pop().descriptor)
