"""Ranks of a tcp world as processes: started one by one, heard, told, ended."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tcp_worlds import DEADLINE_S

PROGRAM = Path(__file__).with_name("tcp_rank.py")


class Rank:
    """A started rank; what it says is read line by line."""

    def __init__(self, action, config, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(PROGRAM), action],
            env={**os.environ, **config.to_env(), "PYTHONFAULTHANDLER": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def hear(self, key):
        for line in self.process.stdout:
            event = json.loads(line)
            if key in event:
                return event
        raise AssertionError(f"it ended without '{key}': {self.process.stderr.read()[-2000:]}")

    def tell(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=DEADLINE_S)
