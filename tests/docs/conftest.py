"""Puts this folder and the extensions of the documentation on the path."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs" / "_extensions")]
