"""Counters of the torture tests, and the table that is printed."""

import sys
from dataclasses import dataclass, field

BAD = ("leaks", "hangs", "wrong bits", "unnamed ranks", "other")


@dataclass
class Tally:
    """One line of the table. `examples`: descriptions of the first few failures.

    stale: names that all ranks' death left until the next start of that user, which removed them. Possible only where
    ranks meet by name (`COBRE_SHM_RENDEZVOUS=name`), and promised no better there; anywhere else such a name is a leak.
    """

    name: str
    trials: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BAD, 0))
    examples: list[str] = field(default_factory=list)
    note: str = ""
    stale: int = 0

    def add(self, kind: str, words: str) -> None:
        self.counts[kind] += 1
        # printed at once: the run may end before the table
        print(f"{self.name}, trial {self.trials}: {kind}: {words}", flush=True)
        if len(self.examples) < 5:
            self.examples.append(f"{kind}: {words}")

    @property
    def summary(self) -> str:
        bad = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"{self.name}: {self.trials}, {bad or 'nothing bad'}"

    @property
    def is_bad(self) -> bool:
        return any(self.counts.values())


def print_table(tallies: list[Tally]) -> None:
    width = max((len(tally.name) for tally in tallies), default=0)
    names = (*BAD, "stale names")
    print(f"{'':{width}}  {'trials':>6}  " + "  ".join(f"{name:>13}" for name in names) + "  note")
    for tally in tallies:
        numbers = "  ".join(f"{count:>13}" for count in (*tally.counts.values(), tally.stale))
        print(f"{tally.name:{width}}  {tally.trials:>6}  {numbers}  {tally.note}")
    print(
        "stale names: left until the next start, which removed them; no failure where ranks meet by name, else a leak"
    )
    for tally in tallies:
        for example in tally.examples:
            print(f"{tally.name}: {example}")
    sys.stdout.flush()
