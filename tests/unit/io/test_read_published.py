"""The examples, and the published cases if they are next to the repository."""

import pytest
from published_data import PUBLISHED_CASES, ROOT

from cobre.io.case import load_case_with_findings
from cobre.sddp.resolved import resolve

EXAMPLES = ROOT / "examples"
FOLDERS = sorted(path.parent for place in (EXAMPLES, PUBLISHED_CASES) for path in place.glob("*/config.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_published_case_loads(folder):
    case, _ = load_case_with_findings(folder)
    study = resolve(case)
    assert len(study.stages) == len(case.horizon.stages)
    assert study.initial_storage_hm3.size == len(case.system.hydros)


def test_numbers_of_an_example():
    """Compare with the numbers in its files."""
    case, problems = load_case_with_findings(EXAMPLES / "four_regions")
    assert not list(problems)
    first = resolve(case).stages[0]
    assert first.bus.load_mean_mw.tolist() == [3392.0, 4384.0563, 1710.0, 931.1769]
    assert first.line.direct_mw[:, 0].tolist() == [1400.0, 600.0, 500.0, 300.0]
    assert first.line.reverse_mw[:, 0].tolist() == [1000.0, 600.0, 700.0, 300.0]
    assert first.discount == pytest.approx(1.08 ** (-31 / 365.25), rel=1e-15)


@pytest.mark.skipif(not (PUBLISHED_CASES / "4ree").is_dir(), reason="the published case 4ree is not here")
def test_numbers_of_a_published_case():
    case, problems = load_case_with_findings(PUBLISHED_CASES / "4ree")
    assert not list(problems)
    assert (len(case.system.hydros), len(case.system.thermals), len(case.system.buses)) == (4, 126, 5)
    first = resolve(case).stages[0]
    assert first.bus.load_mean_mw[0] == 50650.8
    assert first.line.direct_mw[:, 0].tolist() == [7500.0, 1000.0, 4000.0, 3500.0, 10000.0]
    assert first.hydro.turbined_cost.tolist() == [0.0] * 4
    assert first.hydro.spillage_cost.tolist() == [1.0] * 4
    assert first.discount == 1.0
