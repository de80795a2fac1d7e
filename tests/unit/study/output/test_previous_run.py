"""Earlier runs in an output directory."""

import pytest
from example_study import EXAMPLE, overrides

from cobre.comm.backends.local import LocalCommunicator
from cobre.core.file_names import EVENT_FILE
from cobre.runs.events import no_events, read_events
from cobre.sddp.simulation.cost_tables import COSTS
from cobre.study.output.previous_run import OutputHoldsRunError, require_replaceable
from cobre.study.requests import CaseRequest, RunRequest, TrainingRequest
from cobre.study.run import run_study
from cobre.study.simulation.sinks import StreamingSink
from cobre.study.unchecked_config import UncheckedConfig


@pytest.mark.parametrize("overwrite", [False, True])
def test_simulation_into_training_directory_raises(tmp_path, overwrite):
    (tmp_path / "config.json").write_text('{"training": {"enabled": false}}')
    output = tmp_path / "output"
    (output / "training").mkdir(parents=True)
    (output / "training" / "manifest.json").write_text("{}")
    training = TrainingRequest(warm_start=tmp_path / "policy")

    with pytest.raises(OutputHoldsRunError, match="holds a training run"):
        case = CaseRequest(tmp_path, None)
        require_replaceable(RunRequest(case, output, training, overwrite), UncheckedConfig.of(case))


class KilledError(Exception):
    """Raised to simulate a kill during simulation."""


def test_policy_mode_resume_continues_log_and_simulation(tmp_path, monkeypatch):
    """Check that `policy.mode: resume` in config.json does what `--resume` does."""
    stored = []

    def run(mode):
        settings = overrides(**{"policy.mode": mode, "simulation.selection.num_scenarios": 600})
        request = RunRequest(CaseRequest(EXAMPLE, settings, 1), tmp_path, TrainingRequest(checkpoint_every=1))
        with LocalCommunicator() as comm:
            run_study(comm, request, no_events)

    def die(sink, costs):
        sink.close(costs)
        stored.append(len(costs))
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(StreamingSink, "scenarios_done", die)
        run("fresh")
    before = (tmp_path / EVENT_FILE).read_bytes()
    received, write = [], StreamingSink.write

    def count(sink, table, columns):
        received.extend(columns.scenarios if table == COSTS.name else ())
        write(sink, table, columns)

    monkeypatch.setattr(StreamingSink, "write", count)
    run("resume")
    assert (tmp_path / EVENT_FILE).read_bytes().startswith(before)
    assert [event["is_resumed"] for event in read_events(tmp_path) if event["event"] == "run_started"] == [False, True]
    assert 0 < stored[0] < 600
    assert list(received) == list(range(stored[0], 600))
