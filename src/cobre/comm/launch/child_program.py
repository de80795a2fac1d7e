"""The program of the processes that the launcher starts, run by its path: a rank, or the fork server of the ranks.

Both change the handling of signals before their slow imports: a rank that Ctrl-C ends while it imports must print no
traceback, and the fork server is not told to stop at all.
"""

import signal
import sys

FORK_SERVER = "fork-server"
RANK = "rank"
BLOCKED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}  # for the launcher and its ranks


def main() -> None:
    """Run the program that the first argument names, with the arguments after it."""
    if sys.argv.pop(1) == FORK_SERVER:
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)

        from cobre.comm.launch.fork_server import serve_launcher  # noqa: PLC0415 - slow, must not be interrupted

        # The launcher blocks SIGINT while it starts this process; ranks must not inherit that.
        serve_launcher(previous - {signal.SIGINT})
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored, and stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The launcher starts ranks with SIGINT blocked, because Python would print a traceback of its imports.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    from cobre.comm.launch.rank_main import main as rank_main  # noqa: PLC0415 - slow, SIGINT must end it

    rank_main()


if __name__ == "__main__":
    main()
