"""A basis in two forms: as a dense matrix, and as native code factorises it."""

import numpy as np

from cobre._native import LpFactorisation


class Basis:
    """A basis as a dense matrix, by slots, and factorised. The slack of row i is -e_i."""

    def __init__(self, matrix: np.ndarray, slack_is_basic: np.ndarray) -> None:
        """`matrix`: the basic columns that are not slacks."""
        rows, self.factorisation = len(matrix), LpFactorisation()
        row, start = [np.flatnonzero(column) for column in matrix.T], [0]
        for index in row:
            start.append(start[-1] + len(index))
        entries = [float(matrix[i, j]) for j, index in enumerate(row) for i in index]
        flat = [int(i) for index in row for i in index]
        slots = self.factorisation.factorise([int(flag) for flag in slack_is_basic], start, flat, entries)
        self.by_slot = -np.eye(rows)
        for column, slot in enumerate(slots):
            self.by_slot[:, slot] = matrix[:, column]

    def exchange(self, slot: int, column: np.ndarray) -> None:
        self.factorisation.update(slot, column.tolist())
        self.by_slot[:, slot] = column

    def join(self, entries: np.ndarray) -> None:
        self.factorisation.append_row(entries.tolist())
        rows = len(self.by_slot)
        wider = np.zeros((rows + 1, rows + 1))
        wider[:rows, :rows], wider[rows, :rows], wider[rows, rows] = self.by_slot, entries, -1.0
        self.by_slot = wider

    def check(self, random: np.random.Generator, tolerance: float = 1e-9) -> None:
        for density in (0.02, 0.3, 1.0):
            right = random.standard_normal(len(self.by_slot)) * (random.random(len(self.by_slot)) < density)
            for answer, matrix in (
                (self.factorisation.ftran(right.tolist()), self.by_slot),
                (self.factorisation.btran(right.tolist()), self.by_slot.T),
            ):
                residual = np.abs(matrix @ np.array(answer) - right).max()
                assert residual <= tolerance * (1.0 + np.abs(answer).max() * np.abs(matrix).max())
