"""Training on an existing Dask cluster: one rank for each worker; the ranks communicate by our tcp backend.

from distributed import Client
import cobre.dask

result = cobre.dask.train(Client("tcp://scheduler:8786"), "my_case", iterations=50)
"""

from cobre.errors import MissingLibraryError

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise MissingLibraryError("distributed", "[dask]") from error

from cobre.dask.placement import PlacementError
from cobre.dask.training import train

__all__ = ["PlacementError", "train"]
