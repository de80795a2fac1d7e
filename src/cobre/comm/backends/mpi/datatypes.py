"""MPI datatypes by the size of an element, so that counts and displacements can be passed to MPI as they are."""

from cobre.comm.backends.mpi.library import Mpi


class Datatypes(dict[int, object]):
    """`datatypes[itemsize]`: an MPI datatype of this many bytes, created on first use and never freed."""

    def __init__(self, mpi: Mpi) -> None:
        # MPI copies predefined types with memcpy; a derived type may take its slow path for packing.
        super().__init__({1: mpi.BYTE, 2: mpi.INT16_T, 4: mpi.INT32_T, 8: mpi.INT64_T, 16: mpi.C_DOUBLE_COMPLEX})
        self._byte = mpi.BYTE

    def __missing__(self, itemsize: int) -> object:
        unit = self._byte.Create_contiguous(itemsize).Commit()
        self[itemsize] = unit
        return unit
