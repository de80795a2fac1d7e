"""Decks, cases and other published files that are not part of the repository: next to it, or where variables say."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECKS = Path(os.environ.get("COBRE_DECKS", ROOT.parent / "shared" / "decks"))
PUBLISHED_CASES = Path(os.environ.get("COBRE_PUBLISHED_CASES", ROOT.parent / "shared" / "cases"))
REAL_BASES = Path(os.environ.get("COBRE_REAL_BASES", ROOT.parent / "shared" / "bases")) / "bases.npz"
SEEDS = ROOT.parent / "shared" / "seeds"
