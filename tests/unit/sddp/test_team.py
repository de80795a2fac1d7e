"""Tests of teams: items of members, and the layout of their shared tables."""

from itertools import pairwise

import numpy as np
import pytest
from contexts import context_of
from small_cases import SmallCase, hydro, thermal

from cobre.comm.backends.local import LocalCommunicator
from cobre.sddp.ranks import ALIGNMENT, WorkSplit
from cobre.sddp.scenarios import StageBatch
from cobre.sddp.team import Team
from cobre.sddp.team_tables import ArrayLayout, SolutionLayout, SolutionTables, TeamLayout, TeamTables

PATHS = 5


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    case = SmallCase(
        hydros=[hydro(0)],
        thermals=[thermal(0, 10.0, 90.0)],
        stages=3,
        openings=4,
        load={0: 60.0},
        inflow={0: (10.0, 1.0)},
        storage={0: 60.0},
    )
    return context_of(case.write(tmp_path_factory.mktemp("team"))).problem


def layouts_of(layout):
    """Return all array layouts in order."""
    return [
        layout.states,
        layout.objective,
        layout.future_cost,
        *layout.status,
        *layout.cuts,
        layout.costs,
        layout.gradients,
    ]


@pytest.mark.parametrize("members", [(0, 1, 2, 3), (0, 2), (1, 3), (3,)])
def test_blocks_of_members_are_contiguous(members):
    split = WorkSplit(10, 4)  # 3, 3, 2, 2
    for rank in members:
        team = Team(members, rank)
        indices = team.items(split)
        assert indices[team.own_rows(split)].tolist() == list(split.block(rank))
        assert len(indices) == sum(split.counts[member] for member in members)


def test_rank_without_items_owns_an_empty_slice():
    split = WorkSplit(2, 4)
    team = Team((0, 1, 2, 3), 3)
    assert len(team.items(split)[team.own_rows(split)]) == 0


def test_one_rank_needs_no_tables(problem):
    comm = LocalCommunicator()
    team = Team.of(comm, comm, problem, WorkSplit(PATHS, 1))
    assert len(team.members) == 1
    assert team.paths() is None
    assert team.solves(4, 1) is None
    team.wait("nobody")
    team.close()


def test_tables_do_not_overlap_and_are_cache_line_aligned(problem):
    layout = TeamLayout.of(problem, PATHS)
    places = layouts_of(layout)
    assert all(place.start % ALIGNMENT == 0 for place in places)
    assert all(one.end <= other.start for one, other in pairwise(places))
    assert places[0].start >= 2 * ALIGNMENT
    assert layout.nbytes == places[-1].end


def test_tables_of_a_team_have_the_sizes_of_the_problem(problem):
    layout = TeamLayout.of(problem, PATHS)
    program = problem.stages[1].program
    assert layout.states.shape == (3, PATHS, problem.dimension)
    assert layout.status[1].shape == (PATHS, len(program.cost) + len(program.row_lower))
    assert layout.cuts[1].shape == (PATHS, program.num_decided + 1)
    assert layout.costs.shape[1] >= PATHS * 4
    assert layout.gradients.shape[0] >= PATHS * 4 * problem.dimension


def test_counters_alternate_and_leader_resets_them(problem):
    layout = TeamLayout.of(problem, PATHS)
    region = LocalCommunicator().create_shared_region(layout.nbytes, np.uint8)
    tables = TeamTables(region, layout, is_leader=True)
    first = tables.paths().counter
    first[0] = 9
    second = tables.batch(4, 1).counter
    assert not np.shares_memory(first, second)
    assert (first[0], second[0]) == (0, 0)
    second[0] = 7
    third = tables.batch(4, 0)
    assert np.shares_memory(first, third.counter)
    assert (third.counter[0], second[0]) == (0, 0)
    assert third.gradient is None
    region.close()


def test_only_leader_resets_counters(problem):
    layout = TeamLayout.of(problem, PATHS)
    region = LocalCommunicator().create_shared_region(layout.nbytes, np.uint8)
    tables = TeamTables(region, layout, is_leader=False)
    first = tables.paths().counter
    first[0] = 9
    tables.batch(4, 1)
    assert first[0] == 9


@pytest.mark.parametrize("has_solution", [False, True])
def test_tables_of_one_stage_survive_writes_of_the_next(problem, has_solution):
    layout = SolutionLayout.of(problem, PATHS, has_solution=has_solution)
    region = LocalCommunicator().create_shared_region(layout.nbytes, np.uint8)
    tables = SolutionTables(region, layout, is_leader=True)
    program = problem.stages[1].program
    first, second, third = (StageBatch.of(tables.paths(program, PATHS)) for _ in range(3))
    solution = ("inflow", "primal", "dual")
    for name in ("objective", "future_cost", "leaving", *(solution if has_solution else ())):
        assert len(getattr(first, name)) == PATHS
        assert not np.shares_memory(getattr(first, name), getattr(second, name))
        assert np.shares_memory(getattr(first, name), getattr(third, name))
        assert name == "objective" or not np.shares_memory(first.objective, getattr(first, name))
    assert all(len(getattr(first, name)) == (PATHS if has_solution else 0) for name in solution)
    region.close()


def test_array_layout_gives_view():
    memory = np.zeros(256, np.uint8)
    ArrayLayout(64, np.float64, (2, 3)).view(memory)[1, 2] = 1.0
    assert memory[64:112].any()
    assert not memory[:64].any()
    assert ArrayLayout(64, np.float64, (2, 3)).end == 128
