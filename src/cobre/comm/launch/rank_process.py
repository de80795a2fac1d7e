"""The parent's hold on one rank: its process, its exit, its output, its result."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from cobre.comm.launch.output import MESSAGES, Output, Stream
from cobre.comm.launch.payload import ResultReader


class RankProcess:
    """A started rank. It leads its own process group: a terminal's Ctrl-C reaches the parent only."""

    def __init__(
        self,
        rank: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Sequence[int],
        result: ResultReader,
        messages: int | None = None,
    ) -> None:
        """`messages`: the reading end of a pipe that the rank writes lines to; taken over."""
        self.rank = rank
        self.result = result
        self.exit_code: int | None = None
        self.was_stopped = False
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=descriptors,
            process_group=0,
        )
        self.pid = self._process.pid
        self.exit_descriptor = _open_pidfd(self.pid)
        pipes = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        self.streams = [Stream(rank, name, pipe.fileno()) for name, pipe in pipes.items() if pipe]
        self._errors = self.streams[-1]
        self._messages = messages
        if messages is not None:
            self.streams.append(Stream(rank, MESSAGES, messages))

    def has_exited(self) -> bool:
        """Whether the process has ended, without collecting it where the platform can tell."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # collected by somebody else's wait for any child
            return True

    def signal_group(self, signum: signal.Signals) -> None:
        """Reach the rank and everything it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)

    def collect(self, output: Output) -> None:
        """After the exit: end what the rank has started, forward its last words, take its exit code."""
        # Before wait(): as long as the dead process is not collected nobody else can have its number.
        self.signal_group(signal.SIGKILL)
        self.exit_code = self._process.wait()
        for stream in self.streams:
            stream.finish(output)

    def close(self) -> None:
        """Give the descriptors back."""
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        for descriptor in (self.exit_descriptor, self._messages):
            if descriptor is not None:
                os.close(descriptor)
        self.exit_descriptor = self._messages = None

    @property
    def last_words(self) -> str:
        """The end of what the rank wrote to stderr."""
        return "\n".join(self._errors.tail)


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the platform has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or a sandbox that forbids it
        return None
