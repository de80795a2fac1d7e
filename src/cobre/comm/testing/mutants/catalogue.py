"""The list of mutants, and the cases that must detect each of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from cobre.comm.testing.delegate import DelegatingCommunicator
from cobre.comm.testing.mutants import messages, objects


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong communicator, and the ids of the cases that must detect it."""

    kind: type[DelegatingCommunicator]
    killed_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.kind.__name__

    @property
    def what(self) -> str:
        """What is wrong with it: the docstring of its class."""
        return (self.kind.__doc__ or "").partition("\n")[0]


CONTROL = Mutant(DelegatingCommunicator, ())

_ALL = (
    Mutant(messages.ReversedGather, ("gather/layouts", "sequences/back_to_back", "programs/random")),
    Mutant(messages.GatherWithoutDispls, ("gather/layouts", "regions/gather_into")),
    Mutant(messages.GatherIntoGaps, ("gather/layouts",)),
    Mutant(messages.StaleGather, ("sequences/back_to_back",)),
    Mutant(messages.FieldwiseGather, ("gather/layouts",)),
    Mutant(messages.ShortGather, ("gather/limits", "gather/large")),
    Mutant(messages.TreeSum, ("reduce/values", "reduce/limits", "programs/random")),
    Mutant(messages.ReversedSum, ("reduce/values", "reduce/limits")),
    Mutant(messages.NarrowSum, ("reduce/values",)),
    Mutant(messages.MinForMax, ("reduce/values",)),
    Mutant(messages.NanDroppingMin, ("reduce/special",)),
    Mutant(messages.UnsignedZeros, ("reduce/special",)),
    Mutant(messages.NonCanonicalNan, ("reduce/special",)),
    Mutant(messages.SaturatingSum, ("reduce/values",)),
    Mutant(messages.WrongRoot, ("broadcast/values", "sequences/back_to_back")),
    Mutant(messages.TruncatedBroadcast, ("broadcast/limits", "broadcast/large")),
    Mutant(messages.NonWaitingBarrier, ("barrier/nobody_leaves_early",)),
    Mutant(objects.NonWaitingFence, ("regions/fence_waits",)),
    Mutant(objects.WritableViews, ("regions/read_only",)),
    Mutant(objects.EveryRankLeads, ("regions/leader_only",)),
    Mutant(objects.DirtyRegions, ("regions/zero_at_first",)),
    Mutant(objects.AcceptsShortBuffers, ("refusals/arguments",)),
    Mutant(objects.AcceptsAnyRoot, ("refusals/arguments",)),
    Mutant(objects.AcceptsStrides, ("refusals/arguments",)),
    Mutant(objects.ChecksTooLate, ("refusals/arguments", "sequences/numbers")),
    Mutant(objects.WrongRank, ("lifecycle/identity",)),
    Mutant(objects.ConstantSequence, ("sequences/numbers",)),
    Mutant(objects.NeverCloses, ("lifecycle/use_after_close",)),
    Mutant(objects.Picklable, ("callers/not_picklable",)),
    Mutant(objects.AbortWithoutReason, ("failures/abort",)),
    Mutant(objects.NodeClosesWorld, ("lifecycle/use_after_close",)),
)

MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in _ALL}
