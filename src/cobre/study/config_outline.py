"""config.json as far as it is needed before the case is read: how much work there is, and what a run builds on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cobre.io.config.overrides import FILE, with_overrides
from cobre.io.problems import Problems
from cobre.io.stored_json import parse_stored
from cobre.io.untrusted_file import UntrustedFileError, read_untrusted
from cobre.study.requests import CaseRequest


@dataclass(frozen=True, slots=True)
class ConfigOutline:
    """The file with its overrides; None where it cannot be read. Its mistakes are found when the case is read."""

    content: Any

    @classmethod
    def read(cls, case: Path, overrides: Mapping[str, Any] | None = None) -> Self:
        """Of a case directory."""
        try:
            content = parse_stored(read_untrusted(case / FILE))
        except (OSError, ValueError, UntrustedFileError):
            return cls(None)
        return cls(with_overrides(content, overrides, Problems()) if overrides else content)

    @classmethod
    def of(cls, request: CaseRequest) -> Self:
        """Of a case directory, or of a case in memory as far as it says what a run builds on."""
        if isinstance(request.case, Path):
            return cls.read(request.case, request.overrides)
        config = request.case.config
        return cls({"training": {"enabled": config.training.enabled}, "policy": {"mode": config.policy.mode}})

    @property
    def is_trained(self) -> bool:
        """Whether the case trains a policy, and does not only simulate one."""
        return self._at("training", "enabled") is not False

    @property
    def policy_mode(self) -> Any:
        """`policy.mode`: fresh, warm_start or resume in a case without mistakes."""
        mode = self._at("policy", "mode")
        return "fresh" if mode is None else mode

    @property
    def pieces_of_work(self) -> int | None:
        """Forward passes of training, or scenarios where nothing is trained; None when the file does not say.

        More workers than that would only wait.
        """
        if not self.is_trained:
            return _count(self._at("simulation", "selection", "num_scenarios"))
        return _count(self._at("training", "selection", "forward_passes"))

    @property
    def is_tree(self) -> bool:
        """Whether training goes over all paths of a tree."""
        return bool(self._at("training", "selection", "method") == "enumerated")

    def _at(self, *keys: str) -> Any:
        content = self.content
        for key in keys:
            content = content.get(key) if isinstance(content, dict) else None
        return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
