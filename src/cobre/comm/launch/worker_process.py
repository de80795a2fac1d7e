"""The program of a rank, run by its path: from its first line on Ctrl-C ends it without a word, until its task begins.

The launcher starts it with SIGINT held back, because Python would answer one with a traceback of its imports.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started the launcher wants none
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

from cobre.comm.launch.worker import main  # noqa: E402 - takes long, and must not be answered for

if __name__ == "__main__":
    main()
