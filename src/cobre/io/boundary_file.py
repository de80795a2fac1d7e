"""Another study's policy as a boundary: where its file lies, and which of its stages ends on a day."""

from datetime import date
from pathlib import Path

from cobre.io.policy_file import POLICY_MANIFEST, PolicyMetadata

PLACES = ("policy.bin", "policy/policy.bin", POLICY_MANIFEST, f"policy/{POLICY_MANIFEST}")


def find_boundary_file(path: Path) -> Path:
    """A policy file, or the one in a folder: that of a policy, or of a whole run."""
    if not path.is_dir():
        return path
    return next((path / place for place in PLACES if (path / place).exists()), path / PLACES[0])


def stage_that_ends_on(metadata: PolicyMetadata, day: date) -> int | None:
    """Counted from 0; None: there is none, or more than one."""
    found = [stage for stage, end in enumerate(metadata.stage_end_dates) if end == day.isoformat()]
    return found[0] if len(found) == 1 else None
