"""The published cases, where they are beside the repository."""

from pathlib import Path

import pytest

from cobre.io.case import load_case_with_problems
from cobre.sddp.resolved import resolve

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/config.json"))


@pytest.mark.skipif(not NAMES, reason=f"there are no published cases in {CASES}")
def test_every_published_case_loads_and_has_numbers():
    for name in NAMES:
        case, _ = load_case_with_problems(CASES / name)
        study = resolve(case)
        assert len(study.stages) == len(case.horizon.stages), name
        assert study.initial_storage_hm3.size == len(case.system.hydros), name


@pytest.mark.skipif("4ree" not in NAMES, reason=f"there is no published case 4ree in {CASES}")
def test_numbers_of_a_published_case():
    case, problems = load_case_with_problems(CASES / "4ree")
    assert not list(problems)
    assert (len(case.system.hydros), len(case.system.thermals), len(case.system.buses)) == (4, 126, 5)
    first = resolve(case).stages[0]
    assert first.bus.load_mean_mw[0] == 50650.8
    assert first.line.direct_mw[:, 0].tolist() == [7500.0, 1000.0, 4000.0, 3500.0, 10000.0]
    assert first.hydro.turbined_cost.tolist() == [0.0] * 4
    assert first.hydro.spillage_cost.tolist() == [1.0] * 4
    assert first.discount == 1.0
