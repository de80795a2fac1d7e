"""The factorised basis against dense linear algebra: random bases, and those of large studies if they are found."""

import numpy as np
import pytest
from factorised_basis import Basis
from published_data import REAL_BASES


def random_basis(rows: int, slacks: int, density: float, random: np.random.Generator) -> Basis:
    flags = np.zeros(rows, bool)
    flags[random.choice(rows, slacks, replace=False)] = True
    active = np.flatnonzero(~flags)
    matrix = np.where(random.random((rows, len(active))) < density, random.standard_normal((rows, len(active))), 0.0)
    matrix[active, random.permutation(len(active))] += 3.0
    return Basis(matrix, flags)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("rows", "slacks", "density"), [(1, 0, 1.0), (7, 3, 0.3), (60, 20, 0.05), (60, 0, 0.5), (130, 65, 0.02)]
)
def test_solves_with_random_bases(rows: int, slacks: int, density: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    random_basis(rows, slacks, density, random).check(random)


@pytest.mark.parametrize("seed", range(10))
def test_columns_change_and_rows_join(seed: int) -> None:
    random = np.random.default_rng(seed)
    basis = random_basis(50, 20, 0.06, random)
    for step in range(40):
        size = len(basis.by_slot)
        if step % 8 == 5:
            basis.join(random.standard_normal(size) * (random.random(size) < 0.1))
        else:
            column = random.standard_normal(size) * (random.random(size) < 0.1)
            slot = int(random.integers(size))
            column[slot] += 5.0 * np.sign(basis.by_slot[slot, slot] or 1.0)
            if np.abs(np.linalg.solve(basis.by_slot, column)[slot]) < 0.1:
                continue
            basis.exchange(slot, column)
        basis.check(random, 1e-8)


def test_singular_basis_raises() -> None:
    twice = np.array([[1.0, 2.0, 0.0], [3.0, 6.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="singular"):
        Basis(twice, np.zeros(3, bool))


def test_slack_basis_is_factorised() -> None:
    basis = Basis(np.zeros((5, 0)), np.ones(5, bool))
    assert basis.factorisation.ftran([1.0, 0.0, 2.0, 0.0, 0.0]) == [-1.0, 0.0, -2.0, 0.0, 0.0]
    assert basis.factorisation.nucleus == 0


@pytest.mark.skipif(not REAL_BASES.is_file(), reason="needs the real bases next to the repository")
@pytest.mark.parametrize("kind", ["deck_", "deckL_", "q160_", "q80L_"])
def test_real_bases_and_their_pivots(kind: str) -> None:
    """Start bases of real solves, and where their pivots led."""
    data, random = np.load(REAL_BASES, allow_pickle=False), np.random.default_rng(1)
    stages = {str(row["instance"]): str(row["stage"]) for row in data["catalogue"]}
    names = sorted(name for name in stages if name.startswith(kind))
    assert names
    for name in names[:4]:
        whole, columns = whole_matrix(data, stages[name], name)
        variables = list(data[f"{name}_basic0"])
        check_basis(whole, columns, variables, random)
        for leaving, entering, _ in data[f"{name}_pivots"]:
            variables[variables.index(leaving)] = entering
        check_basis(whole, columns, variables, random)


def whole_matrix(data: np.lib.npyio.NpzFile, stage: str, name: str) -> tuple[np.ndarray, int]:
    rows, columns, _, future_cost = (int(number) for number in data[f"{stage}_shape"])
    cuts = data[f"{name}_cuts"]
    whole = np.zeros((rows + len(cuts), columns))
    start, index, value = data[f"{stage}_indptr"], data[f"{stage}_indices"], data[f"{stage}_data"]
    for row in range(rows):
        whole[row, index[start[row] : start[row + 1]]] = value[start[row] : start[row + 1]]
    for number, cut in enumerate(cuts):
        whole[rows + number, data[f"{stage}_storage"]] = cut
        whole[rows + number, future_cost] = 1.0
    return whole, columns


def check_basis(whole: np.ndarray, columns: int, variables: list[int], random: np.random.Generator) -> None:
    flags = np.zeros(len(whole), bool)
    flags[[variable - columns for variable in variables if variable >= columns]] = True
    Basis(whole[:, [variable for variable in variables if variable < columns]], flags).check(random, 1e-7)
