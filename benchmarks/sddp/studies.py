"""Studies to train: published cases where they are found, and the project's own examples."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "build" / "benchmarks"
DECKS = Path(os.environ.get("COBRE_DECKS", ROOT.parent / "shared" / "decks"))
PUBLISHED = Path(os.environ.get("COBRE_PUBLISHED_CASES", ROOT.parent / "shared" / "cases"))
QUICK_DIVISOR = 8


@dataclass(frozen=True, slots=True)
class Study:
    """A case. loop_iterations: how many the reference loop over highspy runs, 0: it does not take part.

    workers: numbers of workers that it is trained by. has_checkpoints: whether it is trained once more with them.
    has_peer: whether cobre-python takes part. forward_passes: of an iteration, None: as the case says.
    options: of examples/generate_sized.py, which makes the case where it is not there.
    """

    name: str
    folder: Path
    iterations: int
    loop_iterations: int = 0
    workers: tuple[int, ...] = ()
    has_checkpoints: bool = False
    has_peer: bool = True
    forward_passes: int | None = None
    options: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether its folder exists."""
        return self.folder.is_dir()

    def with_seed(self, seed: int) -> "Study":
        """Another case of the same size, where the case is generated."""
        if not self.options:
            return self
        folder = self.folder.with_name(f"{self.name}-seed-{seed}")
        return replace(self, folder=folder, options=(*self.options, "--seed", str(seed)))

    def make(self) -> None:
        """Generate the case anew, if it is one of those."""
        if self.options:
            program = ROOT / "examples" / "generate_sized.py"
            subprocess.run([sys.executable, program, self.folder, *self.options], check=True, stdout=subprocess.DEVNULL)

    def shorter(self) -> "Study":
        """Return the study with fewer iterations, for a quick look."""
        short = max(1, self.iterations // QUICK_DIVISOR)
        return replace(self, iterations=short, loop_iterations=self.loop_iterations // QUICK_DIVISOR)


def generated(name: str, iterations: int, *options: str) -> Study:
    """Return a study whose case examples/generate_sized.py makes."""
    return Study(name, GENERATED / name, iterations, options=options)


SMALL_TREE = ("--openings", "10", "--forward-passes", "2")
DECK = DECKS / "pmo_2018_common_12"  # an official deck, in the form that both programs accept

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
        Study("deck-2x1", DECK, 2, forward_passes=1),
        Study("deck-6x4", DECK, 6, forward_passes=4, workers=(1, 2)),
        generated("hydros-160", 4, "--hydros", "160"),
        generated("hydros-80", 4, "--hydros", "80"),
        generated("planes-25", 2, "--hydros", "60", "--planes", "25", *SMALL_TREE),
        generated("planes-100", 2, "--hydros", "60", "--planes", "100", *SMALL_TREE),
        # One iteration of little: what remains is starting.
        Study("start", ROOT / "examples" / "two_reservoirs", 1, workers=(1, 4), has_peer=False),
    )
}
