"""The program of a rank, run by its path. Until its task begins, Ctrl-C ends it without output.

The launcher starts it with SIGINT blocked, because Python would print a traceback of its imports.
"""

import signal

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored, and stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    from cobre.comm.launch.rank_main import main  # a slow import, during which SIGINT must end the process

    main()
