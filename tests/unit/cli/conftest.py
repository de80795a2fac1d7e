"""Puts the tests of runs on the path, for their streams of events."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))  # event_streams
