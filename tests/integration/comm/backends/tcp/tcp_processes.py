"""Ranks of a tcp world as processes: start them one by one, wait for their messages, command and end them."""

import os
import sys
import time
from pathlib import Path

from event_process import EventProcess
from tcp_worlds import DEADLINE_S

PROGRAM = Path(__file__).with_name("tcp_rank.py")


class Rank(EventProcess):
    """A started rank."""

    def __init__(self, action, config, prefix=()):
        environment = {**os.environ, **config.to_env(), "PYTHONFAULTHANDLER": "1"}
        super().__init__([*prefix, sys.executable, str(PROGRAM), action], environment)

    def wait_for(self, key, words=""):
        """Return the next event of that kind that contains `words`; discard the events before it."""
        deadline = time.monotonic() + DEADLINE_S
        try:
            while event := self.next_event(deadline):
                if key in event and words in str(event[key]):
                    return event
        except TimeoutError:
            raise AssertionError(f"no event '{key}' {words} within {DEADLINE_S} s: {self.errors()[-2000:]}") from None
        raise AssertionError(f"it ended without '{key}' {words}: {self.errors()[-2000:]}")

    def end(self):
        self.kill()  # descendants may outlive a rank that has ended
        super().end()
