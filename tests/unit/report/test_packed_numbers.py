"""Packed numbers, percentiles of many cells, and the checksum of the vendored library."""

import hashlib
import re
from importlib import resources

import numpy as np
import pytest
from report_page import unpack

from cobre.report.explorer_data import pack
from cobre.report.simulated import CELLS_AT_ONCE, PERCENTILES, percentiles


def test_packing_keeps_four_digits():
    random = np.random.default_rng(3)
    values = random.normal(size=5000) * 10.0 ** random.integers(-6, 12, 5000)
    np.testing.assert_allclose(unpack(pack(values)), values, rtol=6.2e-5)


def test_special_values_survive_packing():
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -2.5, 1e30])
    np.testing.assert_allclose(unpack(pack(values)), values, rtol=6.2e-5)


def test_zeros_pack_below_1_kb():
    assert len(pack(np.zeros((151, 9, 120)))) < 1000


@pytest.mark.parametrize("scenarios", [1, 2, 7, 100])
def test_percentiles_match_numpy(scenarios):
    values = np.random.default_rng(5).normal(size=(scenarios, 3, CELLS_AT_ONCE // 2))
    values[:, 1, 7] = np.nan
    found = percentiles(values)
    assert found.shape == (len(PERCENTILES), *values.shape[1:])
    np.testing.assert_allclose(found, np.percentile(values, PERCENTILES, axis=0), rtol=1e-12)


def test_vendored_uplot_matches_checksum():
    folder = resources.files("cobre.report").joinpath("vendor", "uplot")
    named = re.findall(r"\| `([^`]+)` \| (\d+) \| `([0-9a-f]{64})` \|", folder.joinpath("README.md").read_text())
    assert {name for name, _, _ in named} == {entry.name for entry in folder.iterdir()} - {"README.md"}
    for name, size, digest in named:
        content = folder.joinpath(name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size), digest)
