"""Exchange of rows without shared memory: through files in a common folder, or else by messages."""

import numpy as np
import pytest
from solving import simulate_trained, train_folder
from systems_water import random_inflows
from test_simulations import fingerprint

from cobre.comm import launch
from cobre.sddp.simulation.policy_simulation import stage_extractors
from cobre.sddp.simulation.tables import EntityIds
from cobre.sddp.simulation.wave import Waves

SCENARIOS, CHUNK = 11, 4
ROWS = "results of stage"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return random_inflows().write(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def expected(case):
    outcome, tables = simulate_trained(train_folder(case), SCENARIOS)
    return outcome.costs.tobytes(), fingerprint(tables)


def simulate_on_a_rank(comm, case, folder, is_common):
    """Return costs, tables, whether rows were sent as messages, and the remaining files."""
    own = folder if is_common else folder / str(comm.rank)
    own.mkdir(exist_ok=True)
    trained = train_folder(case)
    outcome, tables = simulate_trained(trained, SCENARIOS, comm, memory=comm, spool_folder=own, chunk_scenarios=CHUNK)
    labels = [call.label for call in comm.recent_calls()]
    comm.barrier()
    left = [path.name for path in own.iterdir() if path.is_file()]
    return outcome.costs.tobytes(), fingerprint(tables), any(label.startswith(ROWS) for label in labels), left


def run_on_hosts(ranks, ranks_per_host, *arguments, function=simulate_on_a_rank):
    environment = {"COBRE_TCP_RANKS_PER_HOST": str(ranks_per_host)}
    return launch.run(function, ranks, "tcp", arguments, environment=environment)


@pytest.mark.parametrize(("ranks", "ranks_per_host"), [(2, 1), (3, 2), (6, 3)])
def test_rows_between_hosts_are_left_in_files(tmp_path, case, expected, ranks, ranks_per_host):
    """Six ranks and waves of eight scenarios: the last wave has a scenario for three of them only."""
    results = run_on_hosts(ranks, ranks_per_host, case, tmp_path, True)
    assert results[0] == (*expected, False, [])
    assert all(costs == expected[0] and not by_messages for costs, _, by_messages, _ in results)


def test_rows_are_sent_as_messages_without_common_folder(tmp_path, case, expected):
    results = run_on_hosts(3, 2, case, tmp_path, False)
    assert results[0] == (*expected, True, [])
    assert [left for *_, left in results] == [[]] * 3


def fail_after_a_stage(comm, case, folder):
    """Fail on the last rank once it has begun its file."""
    study = train_folder(case).study
    extractors = stage_extractors(study.problem, EntityIds.of(study.case.system))
    waves = Waves(comm, comm, folder, extractors, 4)
    with waves.next(range(4)) as wave:
        wave.add_stage(np.zeros((2, extractors[0].width)))
        if comm.rank == 1:
            raise RuntimeError(f"{len(list(folder.glob('*-1-2')))} file")
        comm.barrier()


def test_failed_rank_leaves_no_file(tmp_path, case):
    with pytest.raises(launch.WorkerError, match="RuntimeError: 1 file"):
        run_on_hosts(2, 1, case, tmp_path, function=fail_after_a_stage)
    assert list(tmp_path.iterdir()) == []
