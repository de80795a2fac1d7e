"""Facts that must agree between ranks, and between a run and its checkpoints."""

import json
from dataclasses import replace

import pytest
from example_study import EXAMPLE, overrides

from cobre.comm import launch
from cobre.comm.launch import WorkerError
from cobre.study.preparation.fingerprint import Fingerprint, RankMismatchError, agree_on, case_digest
from cobre.study.preparation.on_ranks import as_case
from cobre.study.preparation.prepare import prepare

OWN = Fingerprint("1.0", "HiGHS 1.15", "2.4", "a" * 64)


def digest(**more):
    return case_digest(prepare(as_case(EXAMPLE, overrides(**more))[0]))


@pytest.fixture(scope="module")
def reference():
    return digest()


def test_same_case_has_the_same_digest(reference):
    assert digest() == reference


def test_digest_in_stored_policies_stays_what_it_was():
    """A field that is renamed must not make policies and checkpoints those of another problem."""
    study = prepare(as_case(EXAMPLE, {})[0])
    assert study.digest == "0bdd97f4b02a71d12c38f34a28947adc9a05b898c7be6d88dca6ae6894e1cf1d"
    assert case_digest(study) == "3575b7a79d964fcfbbe801fe52b618f23a84c67c01eedd553c5e0d69cd7a2066"


@pytest.mark.parametrize(
    "more",
    [
        {"training.tree_seed": 43},
        {"training.selection": {"method": "sampled", "forward_passes": 5}},
        {"modeling.inflow_non_negativity.method": "none"},
        {"training.cut_selection": {"selection": {"method": "level1"}}},
        {"training.cut_selection": {"state_window": 3}},
    ],
    ids=str,
)
def test_settings_that_affect_bits_change_digest(reference, more):
    assert digest(**more) != reference


@pytest.mark.parametrize(
    "more",
    [
        {"iterations": 99},
        {"simulation.enabled": False},
        {"simulation.selection": {"method": "sampled", "num_scenarios": 3}},
    ],
    ids=str,
)
def test_stopping_and_simulation_settings_keep_digest(reference, more):
    assert digest(**more) == reference


@pytest.mark.parametrize(
    "more",
    [
        {"training.solver": {"retry_time_budget_seconds": 5.0}},
        {"training.cut_selection": {"row_activity_tolerance": 1e-7}},
    ],
    ids=str,
)
def test_unused_settings_keep_digest(reference, more):
    assert digest(**more) == reference


@pytest.mark.parametrize("more", [{"max_added_per_round": 3}, {"violation_tolerance": 1e-6}], ids=str)
def test_unused_rules_of_dynamic_selection_keep_digest(more):
    dynamic = {"method": "dynamic", "candidate_recency": 8}
    with_default, with_more = (
        digest(**{"training.cut_selection": {"selection": selection}}) for selection in (dynamic, dynamic | more)
    )
    assert with_more == with_default


@pytest.mark.parametrize(
    ("file", "entry", "field"),
    [
        ("system/thermals.json", "thermals", "cost_per_mwh"),
        ("initial_conditions.json", "storage", "value_hm3"),
    ],
)
def test_last_bit_of_case_number_changes_digest(reference, case_folder, file, entry, field):
    path = case_folder / file
    content = json.loads(path.read_text())
    content[entry][0][field] *= 1 + 1e-14
    path.write_text(json.dumps(content))
    assert case_digest(prepare(as_case(case_folder, overrides())[0])) != reference


def test_differences_name_both_values():
    assert OWN.differences(OWN) == []
    found = OWN.differences(replace(OWN, numpy="2.5", case="b" * 64))
    assert found == [
        "version of numpy: 2.4 here, 2.5 there",
        "content of the case: aaaaaaaaaaaa... here, bbbbbbbbbbbb... there",
    ]


def agree(comm, prints):
    agree_on(comm, Fingerprint(*prints[comm.rank]), "")
    return comm.rank


def as_tuple(one):
    return tuple(one.as_dict().values())


@pytest.mark.parametrize("ranks", [1, 3])
def test_equal_fingerprints_pass(ranks):
    assert launch.run(agree, ranks, args=([as_tuple(OWN)] * ranks,)) == list(range(ranks))


def test_mismatch_between_ranks_names_ranks_and_difference():
    prints = [as_tuple(OWN), as_tuple(OWN), as_tuple(replace(OWN, solver="HiGHS 1.16"))]
    with pytest.raises(WorkerError) as caught:
        launch.run(agree, 3, args=(prints,))
    assert isinstance(caught.value.inner, RankMismatchError)
    words = "rank 2 differs from rank 0: LP solver: HiGHS 1.16 here, HiGHS 1.15 there"
    assert words in str(caught.value.inner)
    assert str(caught.value).count("RankMismatchError") >= 3, "every rank was told"


@pytest.mark.parametrize("start", ["", "a"])
def test_long_versions_are_compared_truncated(start):
    """A version is text that others write: it may be long, and not ASCII, with a limit inside a character."""
    longest, earlier, later = (start + "ü" * 400 + end for end in ("", "x", "y"))
    prints = [as_tuple(replace(OWN, solver=version)) for version in (longest, earlier, later)]
    assert launch.run(agree, 3, args=(prints,)) == [0, 1, 2], "they differ after 512 bytes"
    with pytest.raises(WorkerError, match="rank 1 differs from rank 0: LP solver"):
        launch.run(agree, 2, args=([prints[0], as_tuple(replace(OWN, solver=start + "ö" + "ü" * 399))],))
