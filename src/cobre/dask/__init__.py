"""Training on a Dask cluster that is there already: one rank for each worker, with our own tcp between them.

from distributed import Client
import cobre.dask

result = cobre.dask.train(Client("tcp://scheduler:8786"), "my_case", iterations=50)
"""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "cobre.dask needs Dask's cluster library: pip install 'pycobre[dask]' (in a clone: pip install '.[dask]')"
    ) from error

from cobre.dask.placement import PlacementError
from cobre.dask.training import train

__all__ = ["PlacementError", "train"]
