"""What must be the same on all ranks, and in a run that is resumed: the programs and the problem itself."""

import hashlib
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from cobre import __version__
from cobre.comm import Communicator
from cobre.core.config import NEVER_READ
from cobre.errors import CobreError
from cobre.records import dataclass
from cobre.sddp.problem.digest import feed
from cobre.sddp.problem.prepared import PreparedStudy
from cobre.solver.batches import LpSolver
from cobre.study.preparation.study_solver import max_dense_rows

_PROBED_SCENARIOS = 4
# Of the section `training`: when to stop, whether to train at all, and what the problem's tree says already. Every
# other field, and so a new one, takes part in the digest.
_WITHOUT_EFFECT_ON_BITS = {"stopping_rules", "stopping_mode", "enabled", "is_enumerated"}
_WORDS = {
    "cobre": "version of cobre",
    "solver": "LP solver",
    "numpy": "version of numpy",
    "case": "content of the case",
}


class RankMismatchError(CobreError):
    """Ranks that cannot work together: different versions or a different case."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions, and a digest over everything in the case that decides about bits."""

    cobre: str
    solver: str
    numpy: str
    case: str

    @classmethod
    def of(cls, study: PreparedStudy, solver: LpSolver, known_digest: str = "") -> "Fingerprint":
        """The fingerprint of this process: its versions, and the study that it has prepared.

        known_digest: that of the case, where it was kept with the study.
        """
        return cls(__version__, solver.version, np.__version__, known_digest or case_digest(study))

    def differences(self, other: "Fingerprint") -> list[str]:
        """What differs, in words; this fingerprint's value comes first."""
        pairs = ((item.name, getattr(self, item.name), getattr(other, item.name)) for item in fields(self))
        return [f"{_WORDS[name]}: {_short(mine)} here, {_short(its)} there" for name, mine, its in pairs if mine != its]

    def as_dict(self) -> dict[str, str]:
        """As plain values, for the file of a checkpoint."""
        return asdict(self)


def agree_on(comm: Communicator, own: Fingerprint) -> None:
    """Raise on every rank unless all ranks have the fingerprint of rank 0."""
    width = 512
    encoded = [value.encode()[:width].ljust(width, b"\0") for value in own.as_dict().values()]
    mine = np.frombuffer(b"".join(encoded), np.uint8)
    table = np.empty((comm.size, len(encoded), width), np.uint8)
    comm.allgatherv(mine, table.reshape(-1), [mine.size] * comm.size, label="versions and case")
    everyone = [Fingerprint(*(part.tobytes().rstrip(b"\0").decode() for part in row)) for row in table]
    for rank, other in enumerate(everyone):
        if differences := other.differences(everyone[0]):
            raise RankMismatchError(
                f"rank {rank} differs from rank 0: {'; '.join(differences)} (here: rank {rank}, there: rank 0). "
                "Give all ranks the same versions and the same case"
            )


def case_digest(study: PreparedStudy, *, counts_unread: bool = False) -> str:
    """SHA-256 over the problem and the settings of training; not over when to stop or what to simulate.

    counts_unread: settings that nothing reads take part, as they did in older checkpoints.
    """
    digest = hashlib.sha256()
    problem, config = study.problem, study.case.config.training
    feed(digest, study.digest)
    deciding = [item.name for item in fields(config) if item.name not in _WITHOUT_EFFECT_ON_BITS]
    if not config.risk_weighted_share:  # checkpoints that were written before there was one can be resumed
        deciding.remove("risk_weighted_share")
    settings = {name: getattr(config, name) for name in deciding}
    feed(digest, list(settings.values()) if counts_unread else [_as_read(*item) for item in settings.items()])
    feed(digest, max_dense_rows())
    scenarios = range(min(_PROBED_SCENARIOS, config.forward_passes))
    for stage_number in range(problem.num_stages):
        feed(digest, study.noise.training_sampler.sample(1, scenarios, stage_number))
    return digest.hexdigest()


def _as_read(name: str, section: Any) -> Any:
    """A part of the section `training`, with defaults in place of what nothing reads."""
    unread = NEVER_READ.get(name)
    return section if unread is None else replace(section, **{key: getattr(type(section)(), key) for key in unread})


def _short(value: str) -> str:
    return value if len(value) < 60 else f"{value[:12]}..."
