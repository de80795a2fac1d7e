"""Small dense linear systems, solved in plain Python: the same bits everywhere."""

from collections.abc import Sequence


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """The solution by elimination with row exchanges; None when the matrix is singular."""
    count = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(count):
        pivot = max(range(column, count), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < _SINGULAR:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, count):
            _eliminate(rows[row], rows[column], column)
    return _substitute(rows)


def _eliminate(target: list[float], source: list[float], column: int) -> None:
    factor = target[column] / source[column]
    for column_index in range(column, len(target)):
        target[column_index] = target[column_index] - factor * source[column_index]


def _substitute(rows: list[list[float]]) -> list[float]:
    solution = [0.0] * len(rows)
    for row in reversed(range(len(rows))):
        rest = rows[row][-1]
        for column in range(row + 1, len(rows)):
            rest = rest - rows[row][column] * solution[column]
        solution[row] = rest / rows[row][row]
    return solution


_SINGULAR = 1e-14
