"""The program of the fork server: imports what ranks need, then forks them on request; each fork continues as a rank.

Run by its path. Signals that ask a run to stop, or to report, are for launcher and ranks: they are blocked here.
"""

import signal

BLOCKED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}

if __name__ == "__main__":
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)

    from cobre.comm.launch.fork_server_main import main  # a slow import, which must not be interrupted

    # The launcher blocks SIGINT while it starts this process; ranks must not inherit that.
    main(previous - {signal.SIGINT})
