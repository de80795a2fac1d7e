"""Who solves what: contiguous blocks, so that the order of ranks is the order of scenarios for any number of ranks."""

from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class WorkSplit:
    """`total` items over `size` ranks; the first ranks get one more when it does not divide evenly."""

    total: int
    size: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Items of every rank; zero for ranks beyond the last item."""
        share, extra = divmod(self.total, self.size)
        return tuple(share + (rank < extra) for rank in range(self.size))

    def block(self, rank: int) -> range:
        """The items of a rank: `WorkSplit(5, 2).block(0)` is range(0, 3), and that of rank 1 is range(3, 5)."""
        share, extra = divmod(self.total, self.size)
        start = rank * share + min(rank, extra)
        return range(start, start + share + (rank < extra))
