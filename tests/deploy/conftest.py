"""Puts this folder on the path: its modules are shared with the tests of containers."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
