"""Contenders: how each library's ranks are started and how their durations come back.

A further contender is one more entry below. Another backend of ours needs nothing else; another library needs
an adapter (its calls) and a class beside `mpi` (how its ranks start).
"""

from collectives.contenders.base import Contender
from collectives.contenders.cobre import CobreContender, MemcpyContender, SocketsContender
from collectives.contenders.gloo import GlooContender
from collectives.contenders.mpi import MPICH, OPEN_MPI, OPEN_MPI_WITH_COLL_SM, CobreMpiContender, MpiContender

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        MemcpyContender(),
        CobreContender("shm"),
        SocketsContender(),
        CobreContender("tcp"),
        GlooContender(),
        MpiContender(MPICH),
        CobreMpiContender(MPICH),
        MpiContender(OPEN_MPI),
        CobreMpiContender(OPEN_MPI),
        MpiContender(OPEN_MPI_WITH_COLL_SM),
    )
}
