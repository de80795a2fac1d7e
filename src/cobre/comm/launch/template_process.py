"""The program of the template: loads what ranks need, then forks them on demand; each fork goes on as a rank.

Run by its path. Signals that ask a run to end, or to tell what it does, concern the launcher and the ranks: they are
held back here.
"""

import signal

HELD = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}
former = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)

from cobre.comm.launch.template_server import main  # noqa: E402 - takes long, and must not be interrupted

if __name__ == "__main__":
    main(former - {signal.SIGINT})
