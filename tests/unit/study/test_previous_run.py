"""Earlier runs in an output directory."""

import pytest

from cobre.study.output import OutputHoldsRunError, require_replaceable
from cobre.study.requests import CaseRequest, RunRequest, TrainingRequest


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_given_policy_is_not_simulated_where_one_was_trained(tmp_path, overwrite):
    (tmp_path / "config.json").write_text('{"training": {"enabled": false}}')
    output = tmp_path / "output"
    (output / "training").mkdir(parents=True)
    (output / "training" / "manifest.json").write_text("{}")
    training = TrainingRequest(warm_start=tmp_path / "policy")

    with pytest.raises(OutputHoldsRunError, match="holds a training run"):
        require_replaceable(RunRequest(CaseRequest(tmp_path, None), output, training, overwrite))
