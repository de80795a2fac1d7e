"""Wrong `COBRE_SHM_*` variables, and what must be said about each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MISSING = "MissingConfigurationError"
FAILED = "InitializationFailedError"


@dataclass(frozen=True, slots=True)
class WrongVariables:
    """Changes to a right environment of a world of one; an empty value removes the variable."""

    changes: Mapping[str, str]
    error: str
    words: tuple[str, ...] = field(default=())

    def variables(self, world: str) -> dict[str, str]:
        """Return the environment of a rank with these changes."""
        right = {
            "COBRE_COMM_BACKEND": "shm",
            "COBRE_SHM_NAME": world,
            "COBRE_SHM_RANK": "0",
            "COBRE_SHM_SIZE": "1",
            "COBRE_SHM_CONNECT_TIMEOUT_SECS": "2",
        }
        return {name: value for name, value in {**right, **self.changes}.items() if value}


def _wrong(variable: str, value: str, error: str, *words: str) -> WrongVariables:
    return WrongVariables({variable: value}, error, (variable, *words))


WRONG_VARIABLES = (
    _wrong("COBRE_SHM_NAME", "", MISSING, "not set"),
    _wrong("COBRE_SHM_RANK", "", MISSING, "not set"),
    _wrong("COBRE_SHM_SIZE", "", MISSING, "not set", "ranks"),
    _wrong("COBRE_SHM_RANK", "two", MISSING, "integer", "two"),
    _wrong("COBRE_SHM_SIZE", "64M", MISSING, "integer", "64M"),
    _wrong("COBRE_SHM_SIZE", "1000000", FAILED, "not bytes", "1000000"),
    _wrong("COBRE_SHM_SIZE", "0", FAILED, "0"),
    _wrong("COBRE_SHM_SIZE", "-4", FAILED, "-4"),
    _wrong("COBRE_SHM_RANK", "1", FAILED, "COBRE_SHM_SIZE"),
    _wrong("COBRE_SHM_RANK", "-1", FAILED, "-1"),
    _wrong("COBRE_SHM_NAME", "a/b", FAILED, "a/b"),
    _wrong("COBRE_SHM_NAME", "x" * 90, FAILED, "64"),
    _wrong("COBRE_SHM_TIMEOUT_SECS", "soon", MISSING, "soon"),
    _wrong("COBRE_SHM_TIMEOUT_SECS", "-1", FAILED, "positive"),
    _wrong("COBRE_SHM_CONNECT_TIMEOUT_SECS", "inf", FAILED, "inf"),
    _wrong("COBRE_SHM_OPERATION_TIMEOUT_SECS", "nan", FAILED, "nan"),
    _wrong("COBRE_SHM_WAIT", "spin", FAILED, "futex", "condvar"),
    _wrong("COBRE_SHM_RENDEZVOUS", "port", FAILED, "socket", "name"),
    _wrong("COBRE_SHM_WINDOW_BYTES", "lots", MISSING, "lots"),
    _wrong("COBRE_SHM_WINDOW_BYTES", "-5", FAILED, "-5"),
    WrongVariables({"COBRE_COMM_BACKEND": "pigeon"}, "InvalidBackendError", ("pigeon", "shm", "local")),
)
