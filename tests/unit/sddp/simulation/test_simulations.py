"""Complete simulations: scenarios, statistics, ranks and threads."""

import contextlib
import hashlib

import numpy as np
import pytest
from solving import Collected, simulate_into, simulate_trained, train, train_folder
from systems_water import cascade, random_inflows

from cobre.comm import RegionClosedError, launch
from cobre.sddp.cut_pool import CutPool
from cobre.sddp.lp.failure import StageFailedError
from cobre.sddp.simulation.policy_simulation import SimulationOutcome

SCENARIOS = 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return random_inflows().write(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def trained(folder):
    return train_folder(folder)


@pytest.fixture(scope="module")
def whole(trained):
    return simulate_trained(trained, SCENARIOS)


def fingerprint(tables):
    digest = hashlib.sha256()
    for name in sorted(tables):
        for column, values in tables[name].items():
            digest.update(f"{name}.{column}".encode() + values.tobytes())
    return digest.hexdigest()


def test_rows_are_ordered_by_scenario(whole):
    _, tables = whole
    assert tables["costs"]["scenario_id"].tolist() == [number for number in range(SCENARIOS) for _ in range(3)]
    assert tables["costs"]["stage_id"].tolist() == [0, 1, 2] * SCENARIOS
    assert tables["hydros"]["hydro_id"].tolist() == [0, 1] * 3 * SCENARIOS


def test_costs_of_scenarios_are_their_stages_costs_today(whole):
    outcome, tables = whole
    costs = tables["costs"]
    today = (costs["immediate_cost"] * costs["discount_factor"]).reshape(SCENARIOS, 3)
    assert outcome.costs == pytest.approx(today.sum(axis=1))
    assert len(set(outcome.costs.tolist())) > 3


def test_first_scenarios_do_not_depend_on_total_number(trained, whole):
    outcome, tables = simulate_trained(trained, 5)
    assert outcome.costs.tolist() == whole[0].costs[:5].tolist()
    for name, columns in tables.items():
        for column, values in columns.items():
            assert values.tolist() == whole[1][name][column][: len(values)].tolist()


@pytest.mark.parametrize("size", [1, 3, 4, 64])
def test_size_of_chunks_changes_no_bit(size, trained, whole):
    outcome, tables = simulate_trained(trained, SCENARIOS, chunk_scenarios=size)
    assert outcome.costs.tobytes() == whole[0].costs.tobytes()
    assert fingerprint(tables) == fingerprint(whole[1])


def test_sink_gets_one_piece_of_every_table_for_each_chunk(trained):
    sink = Collected()
    simulate_into(sink, trained, 10, chunk_scenarios=4)
    pieces = [columns["scenario_id"] for name, columns in sink.pieces if name == "buses"]
    assert [sorted(set(piece.tolist())) for piece in pieces] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_threads_change_no_bit(folder, whole):
    outcome, tables = simulate_trained(train_folder(folder, threads=2), SCENARIOS)
    assert outcome.costs.tobytes() == whole[0].costs.tobytes()
    assert fingerprint(tables) == fingerprint(whole[1])


def simulate_on_a_rank(comm, folder, chunk):
    outcome, tables = simulate_trained(train_folder(folder), SCENARIOS, comm, chunk_scenarios=chunk)
    return outcome.costs.tobytes(), fingerprint(tables), len(tables)


@pytest.mark.parametrize(("size", "chunk"), [(2, None), (3, 2)])
def test_ranks_change_no_bit(size, chunk, folder, whole):
    """With three ranks and chunks of two scenarios one rank has nothing to do."""
    results = launch.run(simulate_on_a_rank, size, args=(folder, chunk))
    assert {costs for costs, _, _ in results} == {whole[0].costs.tobytes()}
    assert results[0][1] == fingerprint(whole[1])
    assert [tables for _, _, tables in results[1:]] == [0] * (size - 1)


class Recorder:
    """A rank's shared memory, with a list of the regions that were created in it."""

    def __init__(self, comm):
        self._comm = comm
        self.regions = []

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def create_shared_region(self, *args, **options):
        self.regions.append(self._comm.create_shared_region(*args, **options))
        return self.regions[-1]


class FullDisk(Collected):
    """A sink that cannot write."""

    def write(self, name, columns):
        raise OSError("no space left on device")


def is_open(region):
    try:
        region.as_array()
    except RegionClosedError:
        return False
    return True


def open_regions_after_a_failure(comm, folder):
    """Return how many regions the simulation made, and how many of them this rank has not closed."""
    trained, memory = train_folder(folder), Recorder(comm)
    with contextlib.suppress(OSError):
        simulate_into(FullDisk(), trained, 4, comm, memory)
    return len(memory.regions), sum(map(is_open, memory.regions))


def test_failed_simulation_closes_its_shared_memory(folder):
    (made, left_open), *_ = launch.run(open_regions_after_a_failure, 2, "shm", (folder,))
    assert made >= 2
    assert left_open == 0


def test_simulation_uses_given_policy(trained, whole):
    """Without cuts no water is saved; cuts lower the mean cost."""
    study, comm = trained.study, trained.context.comm
    empty = CutPool(comm, study.problem.num_stages, study.problem.dimension)
    blind = simulate_into(Collected(), trained, 64, comm, pool=empty)
    seeing, _ = simulate_trained(trained, 64)
    assert seeing.mean < blind.mean


def test_deterministic_study_costs_its_bound_in_every_scenario(tmp_path):
    trained = train(cascade(), tmp_path)
    outcome, _ = simulate_trained(trained, 3)
    assert outcome.costs.tolist() == pytest.approx([trained.history[-1].lower_bound] * 3)
    assert outcome.std == pytest.approx(0.0)


def test_statistics():
    outcome = SimulationOutcome.of(np.array([10.0, 20.0, 30.0, 60.0]))
    assert outcome.mean == 30.0
    assert outcome.std == pytest.approx((1400.0 / 3.0) ** 0.5)
    assert outcome.half_width == pytest.approx(1.96 * outcome.std / 2.0)
    assert [outcome.quantile(share) for share in (0.0, 0.5, 1.0)] == [10.0, 25.0, 60.0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        outcome.quantile(95)


def test_half_width_of_one_scenario_is_zero():
    outcome = SimulationOutcome.of(np.array([7.0]))
    assert (outcome.mean, outcome.std, outcome.half_width) == (7.0, 0.0, 0.0)


def test_zero_scenarios_raise(trained):
    with pytest.raises(ValueError, match="at least one scenario"):
        simulate_trained(trained, 0)


def test_error_names_infeasible_scenario(tmp_path):
    """The only opening of a stage is drier than in training: a reservoir runs dry."""
    case = random_inflows(method="none", openings=1, inflow={0: (8.0, 0.0), 1: (2.0, 0.0)})
    trained = train(case, tmp_path / "case")
    trained.study.problem.openings[1].realisations.inflow_m3s[:, 0] = -40.0
    with pytest.raises(StageFailedError, match=r"simulated scenario 0.*infeasible.*Too little water.*saved as"):
        simulate_trained(trained, 2, failure_folder=tmp_path / "failures")
    assert len(list((tmp_path / "failures").glob("scenario0-stage1*"))) == 2
