"""Columns of results as NumPy has them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def numbers_of(column: "pa.ChunkedArray") -> NDArray[Any]:
    """The numbers of a column, nulls as NaN.

    Not `to_numpy` where another way is open: it loads pandas where that is installed, which takes half a second.
    """
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if column.null_count or not is_plain:
        return np.asarray(column.to_numpy())
    return np.from_dlpack(column.combine_chunks())
