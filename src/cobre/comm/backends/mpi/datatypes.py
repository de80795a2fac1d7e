"""MPI datatypes by the size of an element, so that counts are elements and no numbers need multiplying."""

from cobre.comm.backends.mpi.library import Mpi


class Datatypes(dict[int, object]):
    """`datatypes[itemsize]`: a datatype of so many bytes; made when first asked for, kept for ever."""

    def __init__(self, mpi: Mpi) -> None:
        # MPI moves its own types by plain copies; a type of several bytes that we make may take the slow way.
        super().__init__({1: mpi.BYTE, 2: mpi.INT16_T, 4: mpi.INT32_T, 8: mpi.INT64_T, 16: mpi.C_DOUBLE_COMPLEX})
        self._byte = mpi.BYTE

    def __missing__(self, itemsize: int) -> object:
        unit = self._byte.Create_contiguous(itemsize).Commit()
        self[itemsize] = unit
        return unit
