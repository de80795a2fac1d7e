"""What is trained: published cases where they are found, and the project's own examples."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = Path(os.environ.get("COBRE_PUBLISHED_CASES", ROOT.parent / "shared" / "cases"))
QUICK_DIVISOR = 8


@dataclass(frozen=True, slots=True)
class Study:
    """A case. loop_iterations: how many the reference loop over highspy runs, 0: it does not take part.

    workers: numbers of workers that it is trained by. has_checkpoints: whether it is trained once more with them.
    has_peer: whether cobre-python takes part. forward_passes: of an iteration, None: as the case says.
    """

    name: str
    folder: Path
    iterations: int
    loop_iterations: int = 0
    workers: tuple[int, ...] = ()
    has_checkpoints: bool = False
    has_peer: bool = True
    forward_passes: int | None = None

    @property
    def is_here(self) -> bool:
        """Whether its folder exists."""
        return self.folder.is_dir()

    def shorter(self) -> "Study":
        """A first impression."""
        short = max(1, self.iterations // QUICK_DIVISOR)
        return replace(self, iterations=short, loop_iterations=self.loop_iterations // QUICK_DIVISOR)


STUDIES = {
    study.name: study
    for study in (
        Study("1dtoy", PUBLISHED / "1dtoy", 128, loop_iterations=128),
        Study("4ree", PUBLISHED / "4ree", 256, loop_iterations=48),
        # cobre-python takes a minute and a half for it, which is no news after the other three.
        Study(
            "four_regions", ROOT / "examples" / "four_regions", 40, loop_iterations=8, workers=(1, 2), has_peer=False
        ),
        Study("large", ROOT / "examples" / "large", 20, workers=(1, 2), has_checkpoints=True),
        # One iteration of little: what remains is starting.
        Study("start", ROOT / "examples" / "two_reservoirs", 1, workers=(1, 4), has_peer=False),
    )
}
