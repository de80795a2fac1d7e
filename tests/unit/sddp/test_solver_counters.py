"""Counters of the solver by phase: sums that ranks exchange and checkpoints keep."""

from contexts import context_of, iterated
from small_cases import SmallCase, hydro, thermal

from cobre.sddp.iteration_records import WIDTH, Phase, from_vector, phases_as_dict, sum_by_phase, to_vector
from cobre.solver.batches import SolveStatistics

SOME = SolveStatistics(
    solves=4, pivots=10, refactorisations=2, active_rows=20, nucleus=6, retries=1, library_solves=3, seconds=5e-5
)


def test_means_follow_from_sums():
    assert SOME.us_per_pivot == 5.0
    assert SOME.mean_active_rows == 5.0
    assert SOME.mean_nucleus == 3.0


def test_means_without_solves_are_none():
    nothing = SolveStatistics()
    assert (nothing.us_per_pivot, nothing.mean_active_rows, nothing.mean_nucleus) == (None, None, None)


def test_phases_come_back_from_their_numbers():
    phases = {Phase.FORWARD: SOME, Phase.LOWER_BOUND: SOME + SOME}
    numbers = to_vector(phases)
    assert len(numbers) == WIDTH
    back = from_vector(numbers)
    assert back[Phase.FORWARD] == SOME
    assert back[Phase.LOWER_BOUND].pivots == 20
    assert back[Phase.BACKWARD] == SolveStatistics()


def test_counts_of_ranks_are_summed_and_empty_phases_left_out():
    total = sum_by_phase([{Phase.BACKWARD: SOME}, {Phase.BACKWARD: SOME}, {}])
    assert total[Phase.BACKWARD].solves == 8
    as_json = phases_as_dict(total)
    assert list(as_json) == ["backward"]
    assert as_json["backward"]["library_solves"] == 6
    assert as_json["backward"]["us_per_pivot"] == 5.0


def test_iteration_counts_each_phase(tmp_path):
    """Two stages with three openings: the paths, the openings of the second stage, those of the first."""
    case = SmallCase(
        hydros=[hydro(0)],
        thermals=[thermal(0, 10.0, 90.0)],
        stages=2,
        openings=3,
        load={0: 60.0},
        inflow={0: (10.0, 1.0)},
        storage={0: 60.0},
    )
    context = context_of(case.write(tmp_path))
    iterated(context, 1)
    paths = len(context.team_paths)
    solves = {
        str(phase): part.solves for phase, part in from_vector(context.meter.solves.as_vector()).items() if part.solves
    }
    assert solves == {"forward": 2 * paths, "backward": 3 * paths, "lower_bound": 3}
    assert context.meter.solves.total.solves == 5 * paths + 3
    assert all(part.seconds > 0.0 for part in from_vector(context.meter.solves.as_vector()).values() if part.solves)
