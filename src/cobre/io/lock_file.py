"""run.lock: held for as long as a run writes to its output directory, however the run ends."""

import fcntl
from pathlib import Path

LOCK_FILE = "run.lock"


def is_in_use(folder: Path) -> bool:
    """Whether a run holds the directory right now; a file that nobody holds is what a killed process left.

    Asks for no right to write: whoever may read results may also know whether they are still being made.
    """
    try:
        with (folder / LOCK_FILE).open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
