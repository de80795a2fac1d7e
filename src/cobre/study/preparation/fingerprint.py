"""Fingerprints of programs and problem, which must be equal on all ranks and in a resumed run."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from cobre import __version__
from cobre.comm import Communicator
from cobre.core.case import Case
from cobre.core.file_names import CONFIG_FILE
from cobre.errors import CobreError
from cobre.io.case_folder.case_files import FOLDERS
from cobre.records import dataclass
from cobre.sddp.plugins.interfaces import Sampler
from cobre.sddp.plugins.user_plugins import NO_PLUGINS, Plugins
from cobre.sddp.problem.problem import PreparedStudy, feed
from cobre.solver.batches import LpSolver
from cobre.stochastic.sampling import NoiseSampler
from cobre.study.preparation.study_solver import max_dense_rows
from cobre.study.requests import CaseRequest

_SUFFIXES = (".json", ".parquet")


def feed_bytes(digest: Any, content: bytes) -> None:
    """Add bytes to a digest, with their length."""
    digest.update(len(content).to_bytes(8, "little"))
    digest.update(content)


def input_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all files of a case except config.json, unknown ones included: they give warnings."""
    for name in ("", *FOLDERS):
        directory = folder / name
        if directory.is_dir():
            paths = sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES)
            yield from ((f"{name}/{path.name}", path) for path in paths if path.name != CONFIG_FILE)


_PROBED_SCENARIOS = 4

# Fields of `training` outside the digest, to which plug-ins contribute their identities. All others are part.
_WITHOUT_EFFECT_ON_BITS = {"stopping_rules", "stopping_mode", "enabled", "parallelism", "plugins"}
FILES_DIFFER_FROM_LEADER = "files other than those of its node's leader"
"""Replaces the digest of a case if the directory of this rank has other files."""

_WORDS = {
    "cobre": "version of cobre",
    "solver": "LP solver",
    "numpy": "version of numpy",
    "case": "content of the case",
}


class RankMismatchError(CobreError):
    """Ranks that cannot work together: different versions, another case or other settings."""

    remedy = "give all ranks the same case, the same settings and the same versions of Cobre and its libraries"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions, and a digest over everything in the case that affects bits."""

    cobre: str
    solver: str
    numpy: str
    case: str

    @classmethod
    def of(
        cls, study: PreparedStudy, solver: LpSolver, known_digest: str = "", plugins: Plugins = NO_PLUGINS
    ) -> "Fingerprint":
        """Return the fingerprint of this process: its versions, and the study that it has prepared.

        known_digest: the digest of the case if the cache had it.
        """
        return cls(__version__, solver.version, np.__version__, known_digest or case_digest(study, plugins))

    def differences(self, other: "Fingerprint") -> list[str]:
        """Describe the differences; the values of this fingerprint come first."""
        pairs = ((item.name, getattr(self, item.name), getattr(other, item.name)) for item in fields(self))
        return [
            f"{_WORDS[name]}: {_short(here)} here, {_short(there)} there"
            for name, here, there in pairs
            if here != there
        ]

    def as_dict(self) -> dict[str, str]:
        """Return plain values, for the file of a checkpoint."""
        return asdict(self)


def agree_on(comm: Communicator, fingerprint: Fingerprint, settings: str) -> None:
    """Raise RankMismatchError on every rank unless all have the fingerprint and the settings of rank 0. Collective.

    settings: a digest of all settings of the call; the fingerprint has only those that affect bits.
    """
    width = 512
    encoded = [value.encode()[:width].ljust(width, b"\0") for value in (*fingerprint.as_dict().values(), settings)]
    encoded_here = np.frombuffer(b"".join(encoded), np.uint8)
    table = np.empty((comm.size, len(encoded), width), np.uint8)
    comm.allgatherv(encoded_here, table.reshape(-1), [encoded_here.size] * comm.size, label="versions and case")
    rows = [[value.tobytes().rstrip(b"\0").decode(errors="replace") for value in row] for row in table]
    for rank, (*texts, settings_of_rank) in enumerate(rows):
        differences = Fingerprint(*texts).differences(Fingerprint(*rows[0][:-1]))
        if settings_of_rank != rows[0][-1]:
            differences.append("settings of the call")
        if differences:
            raise RankMismatchError(
                f"rank {rank} differs from rank 0: {'; '.join(differences)} (here: rank {rank}, there: rank 0). "
                "Give all ranks the same versions, the same case and the same settings"
            )


def requested_settings(request: CaseRequest) -> str:
    """Return a digest of the settings of a call: its overrides, or the configuration of a case in memory."""
    digest = hashlib.sha256()
    if isinstance(request.case, Case):
        feed(digest, request.case.config)
    else:
        feed(digest, sorted((name, repr(value)) for name, value in (request.overrides or {}).items()))
    return digest.hexdigest()


def requested_files(request: CaseRequest) -> str:
    """Return a digest of config.json, and of names and sizes of the other input files.

    Empty for a case in memory, and where this rank does not see the folder: the leader of its node reads it.
    """
    if not isinstance(request.case, Path):
        return ""
    digest = hashlib.sha256()
    try:
        feed_bytes(digest, (request.case / CONFIG_FILE).read_bytes())
        feed_bytes(digest, repr([(name, path.stat().st_size) for name, path in input_files(request.case)]).encode())
    except OSError:
        return ""
    return digest.hexdigest()


def case_digest(study: PreparedStudy, plugins: Plugins = NO_PLUGINS) -> str:
    """Return SHA-256 over the problem and the settings of training, without stopping rules and simulation."""
    digest = hashlib.sha256()
    problem, config = study.problem, study.case.config.training
    feed(digest, study.digest)
    sections = [getattr(config, item.name) for item in fields(config) if item.name not in _WITHOUT_EFFECT_ON_BITS]
    # `effective`: a section without the settings that have no effect.
    feed(digest, [study.case.format_version, *(getattr(section, "effective", section) for section in sections)])
    if used := plugins.identities:
        feed(digest, used)
    feed(digest, max_dense_rows())
    scenarios = range(min(_PROBED_SCENARIOS, config.forward_passes))
    for stage_number in range(problem.num_stages):
        feed(digest, _draws(study.noise.training_sampler, scenarios, stage_number))
    return digest.hexdigest()


def _draws(sampler: Sampler, scenarios: range, stage: int) -> Any:
    """Return the draws of a sampler in the first iteration: noise, or indices of openings for a user's sampler."""
    if isinstance(sampler, NoiseSampler) or not sampler.is_in_sample:
        return sampler.sample(1, scenarios, stage)
    return sampler.opening_indices(1, scenarios, stage)


def _short(value: str) -> str:
    return value if len(value) < 60 else f"{value[:12]}..."
