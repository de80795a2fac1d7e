"""Searching cuts in single precision first finds the cut that a scan of all cuts finds, with the same bits."""

import numpy as np
import pytest
from small_programs import cut_rows

from cobre._native import highest_cuts
from cobre.core.arrays import Flags, Floats
from cobre.solver.batches import CutRows

DECIDED, KNOWN, SHARED = 5, 3, 4
DIMENSION = DECIDED + KNOWN + SHARED
SOLVES = 12


class Pool:
    """Cuts as tangents of a convex function, and solves whose points are near those of the tangents."""

    def __init__(self, count: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        points = self.random.uniform(0.0, 90.0, (count, DIMENSION))
        self.slopes = -600.0 / (points + 10.0) ** 1.5 / DIMENSION
        self.intercepts = (1200.0 / np.sqrt(points + 10.0)).sum(axis=1) / DIMENSION - (self.slopes * points).sum(axis=1)
        self.active = np.ones(count, np.uint8)
        self.excluded = np.zeros(count, np.uint8)
        self.states = self.random.uniform(0.0, 90.0, (SOLVES, DECIDED))
        self.known = self.random.uniform(0.0, 90.0, (SOLVES, KNOWN))
        self.shared = self.random.uniform(0.0, 90.0, SHARED)
        self.limits = np.full(SOLVES, -np.inf)

    def rows(self) -> CutRows:
        rows = cut_rows(self.intercepts, self.slopes)
        rows.active[:] = self.active
        return rows

    def values(self) -> Floats:
        """Return the values of all cuts, solves x cuts, added in the order of the kernel."""
        with np.errstate(all="ignore"):
            values = np.repeat(self.intercepts[None, :], SOLVES, axis=0)
            for component, x in enumerate(self.shared, start=DECIDED + KNOWN):
                values += self.slopes[:, component] * x if x != 0.0 else 0.0
            for part, first in ((self.known, DECIDED), (self.states, 0)):
                for component in range(part.shape[1]):
                    x = part[:, component, None]
                    values = np.where(x != 0.0, values + self.slopes[:, first + component] * x, values)
        return values

    def check(self) -> np.ndarray:
        """Compare both searches with the definition; return the cuts."""
        found = [search(self.rows(), self, is_screened) for is_screened in (False, True)]
        values = np.where((self.active == 1) & (self.excluded == 0), self.values(), -np.inf)
        cuts, highest = np.full(SOLVES, -1), self.limits.copy()
        for cut in range(len(self.active)):
            is_higher = values[:, cut] > highest
            cuts[is_higher], highest[is_higher] = cut, values[is_higher, cut]
        for cut, value in found:
            np.testing.assert_array_equal(cut, cuts)
            assert value.tobytes() == highest.tobytes()
        return cuts


def search(rows: CutRows, pool: Pool, is_screened: bool) -> tuple[np.ndarray, Floats]:
    found = highest_cuts(rows, pool.states, pool.known, pool.shared, pool.limits, pool.excluded, is_screened)
    return found.cut, found.value


@pytest.mark.parametrize("count", [0, 1, 15, 16, 63, 64, 65, 300, 1000])
def test_the_same_cut_in_pools_of_any_size(count: int) -> None:
    assert (Pool(count, seed=count).check() >= 0).all() == (count > 0)


def test_only_cuts_above_the_limit_count() -> None:
    pool = Pool(500, seed=1)
    highest = np.sort(pool.values(), axis=1)
    pool.limits = highest[:, -1].copy()
    pool.limits[::3] = np.nextafter(pool.limits[::3], -np.inf)
    pool.limits[1::3] = highest[1::3, -7]
    assert (pool.check() >= 0).tolist() == [True, True, False] * 4


def test_the_first_of_equal_cuts_is_found_wherever_they_are() -> None:
    pool = Pool(400, seed=2)
    best = pool.check()
    for cut in set(best.tolist()):
        for copy in (3, 399, 130):
            pool.intercepts[copy], pool.slopes[copy] = pool.intercepts[cut], pool.slopes[cut]
    assert (pool.check() <= best).all()
    pool.intercepts[:], pool.slopes[:] = pool.intercepts[0], pool.slopes[0]
    assert (pool.check() == 0).all()


def test_cuts_that_differ_by_less_than_single_precision_are_told_apart() -> None:
    pool = Pool(400, seed=3)
    pool.slopes[:] = pool.slopes[0]
    pool.intercepts[:] = pool.intercepts[0] * (1.0 + 1e-13 * pool.random.integers(-50, 50, 400))
    assert (pool.check() == np.argmax(pool.intercepts)).all()


def test_cuts_that_are_not_selected_or_excluded_are_not_found() -> None:
    pool = Pool(700, seed=4)
    for _ in range(40):
        best = np.unique(pool.check())
        pool.active[best[::2]] = 0
        pool.excluded[best[1::2]] = 1
    pool.active[64:256] = 0  # whole blocks
    assert (pool.check() >= 0).all()
    pool.active[:] = 0
    assert (pool.check() == -1).all()


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1e-20, 1e20, 1e36, 1e38, 1e150])
def test_numbers_of_any_size(scale: float) -> None:
    pool = Pool(300, seed=5)
    pool.slopes *= scale
    pool.intercepts *= scale
    pool.check()
    pool.slopes /= scale
    pool.states *= scale
    pool.known *= scale
    pool.check()
    pool.slopes /= scale  # products of about 1
    pool.check()
    pool.slopes[::2] *= scale
    pool.check()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite(value: float) -> None:
    pool = Pool(300, seed=6)
    pool.limits[:4] = value
    pool.check()
    pool.intercepts[70] = value
    pool.check()
    pool.slopes[200, 2] = value
    pool.check()
    pool.states[:, 2] = 0.0
    pool.check()
    pool.states[2, 1] = value
    pool.known[3, 0] = value
    pool.check()


def test_random_pools_that_change() -> None:
    for seed in range(30):
        pool = Pool(int(np.random.default_rng(seed).integers(1, 900)), 100 + seed)
        random = pool.random
        for _ in range(4):
            pool.limits = np.quantile(pool.values(), random.uniform(0.5, 1.0), axis=1)
            pool.check()
            changed = random.integers(0, len(pool.active), 30)
            pool.slopes[changed] = pool.slopes[random.permutation(changed)] * random.uniform(0.9, 1.1)
            pool.intercepts[changed] += random.standard_normal(30) * 10.0 ** random.integers(-12, 3)
            pool.active = random_flags(random, len(pool.active), 0.7)
            pool.excluded = random_flags(random, len(pool.active), 0.02)
            pool.states = pool.states + random.standard_normal(pool.states.shape)
            pool.shared[random.integers(SHARED)] = 0.0
            if random.random() < 0.5:
                smaller = max(1, len(pool.active) - 40)
                for name in ("intercepts", "slopes", "active", "excluded"):
                    setattr(pool, name, getattr(pool, name)[:smaller].copy())


def random_flags(random: np.random.Generator, count: int, share: float) -> Flags:
    return (random.random(count) < share).astype(np.uint8)
