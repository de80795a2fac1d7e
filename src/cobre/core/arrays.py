"""Names of array types. Shapes differ: the comment beside a field gives its axes, such as `S x N`."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]  # ids and indices that native code reads
Indices = NDArray[np.int64]  # indices into NumPy arrays; -1 usually means none
Flags = NDArray[np.bool_]
ByteFlags = NDArray[np.uint8]  # 0 or 1, one byte each: flags that native code reads
