"""Puts this folder on the path, for the tests of the command line."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
