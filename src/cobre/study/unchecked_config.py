"""Settings that are needed before a case is read and checked: the amount of work, and the starting point."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from cobre.io.findings import Findings
from cobre.io.input_files.config_overrides import ConfigDocument, with_overrides
from cobre.io.storage.stored_json import is_shallow
from cobre.records import dataclass
from cobre.study.requests import CaseRequest, Overrides


def with_config_document(request: CaseRequest) -> CaseRequest:
    """Return the request with the config.json of its case directory, read once.

    The document travels with the request, so that the process that starts a run and all ranks decide by the same text.
    """
    if request.config is not None or not isinstance(request.case, Path):
        return request
    try:
        return replace(request, config=ConfigDocument.read(request.case))
    except OSError:  # reported when the case is loaded
        return request


@dataclass(frozen=True, slots=True)
class UncheckedConfig:
    """Content of config.json with overrides, not validated; None if it cannot be parsed, which is reported later."""

    content: Any

    @classmethod
    def of(cls, request: CaseRequest) -> Self:
        """Return the configuration of a case directory, or of a case in memory as far as a run depends on it."""
        if isinstance(request.case, Path):
            return cls._of_document(with_config_document(request).config, request.overrides)
        config = request.case.config
        return cls({"training": {"enabled": config.training.enabled}, "policy": {"mode": config.policy.mode}})

    @classmethod
    def _of_document(cls, config: ConfigDocument | None, overrides: Overrides | None) -> Self:
        document = None if config is None else config.document
        if document is None or not is_shallow(document.content):
            return cls(None)
        return cls(with_overrides(document.content, overrides, Findings()) if overrides else document.content)

    @property
    def is_trained(self) -> bool:
        """Whether the case trains a policy."""
        return self._at("training", "enabled") is not False

    @property
    def is_simulated(self) -> bool:
        """Whether the case simulates the policy."""
        return self._at("simulation", "enabled") is True

    @property
    def policy_mode(self) -> Any:
        """`policy.mode`: fresh, warm_start or resume in a valid case."""
        mode = self._at("policy", "mode")
        return "fresh" if mode is None else mode

    @property
    def has_boundary(self) -> bool:
        """Whether the case has a boundary policy."""
        return self._at("policy", "boundary") is not None

    @property
    def max_useful_workers(self) -> int | None:
        """Number of forward passes, or of scenarios where nothing is trained: more workers would be idle.

        None if the file does not say.
        """
        if not self.is_trained:
            return _count(self._at("simulation", "selection", "num_scenarios"))
        return _count(self._at("training", "selection", "forward_passes"))

    @property
    def is_tree(self) -> bool:
        """Whether training enumerates all paths of a tree."""
        return bool(self._at("training", "selection", "method") == "enumerated")

    def _at(self, *keys: str) -> Any:
        content = self.content
        for key in keys:
            content = content.get(key) if isinstance(content, dict) else None
        return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
