"""The study that these tests use."""

from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "two_reservoirs"
ITERATIONS = 3


def overrides(iterations=ITERATIONS, **more):
    """Return settings that end training early."""
    rules = [{"type": "iteration_limit", "limit": iterations}]
    return {"training.stopping_rules": rules, **more}
