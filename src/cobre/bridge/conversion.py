"""One conversion: cobre-bridge reads the deck and writes the case."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cobre.bridge.environment import Bridge, clean_environment
from cobre.bridge.errors import DeckNotConvertedError
from cobre.io.atomic import WriteError

Model = Literal["newave", "decomp"]


@dataclass(frozen=True, slots=True)
class DeckRequest:
    """What shall become what. has_boundary: DECOMP decks bring the cost-to-go after their end along."""

    model: Model
    deck: Path
    case: Path
    has_boundary: bool = True
    is_forced: bool = False

    def arguments(self) -> list[str | Path]:
        """Of cobre-bridge."""
        options = [*(["--force"] if self.is_forced else []), *([] if self.has_boundary else ["--no-fcf"])]
        return ["convert", self.model, *options]

    def paths(self) -> list[str | Path]:
        """After the options; a name that begins with a dash is none."""
        return ["--", self.deck, self.case]


def convert_deck(bridge: Bridge, request: DeckRequest) -> None:
    """Convert; what cobre-bridge says goes where this process prints. Raises DeckNotConvertedError."""
    with _untouched_on_failure(request):
        done = subprocess.run(
            bridge.command(*request.arguments(), *request.paths()), env=clean_environment(), check=False
        )
        if done.returncode:
            raise DeckNotConvertedError(_refusal(request, "cobre-bridge says why above"))


def convert_deck_quietly(bridge: Bridge, request: DeckRequest) -> dict[str, Any]:
    """Convert, and give cobre-bridge's own account: `status`, `summary` and `diagnostics`."""
    with _untouched_on_failure(request):
        command = bridge.command(*request.arguments(), "--json", *request.paths())
        done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
        try:
            account = dict(json.loads(done.stdout))
        except ValueError:
            raise DeckNotConvertedError(_refusal(request, done.stderr.strip()[-2000:])) from None
        if done.returncode:
            raise DeckNotConvertedError(_refusal(request, "; ".join(_findings(account))))
        return account


def _findings(account: dict[str, Any]) -> list[str]:
    found = account.get("diagnostics", ())
    return [str(entry.get("summary")) for entry in found if entry.get("severity") == "error"] or [json.dumps(account)]


def _refusal(request: DeckRequest, why: str) -> str:
    return f"{request.deck}: this deck of {request.model.upper()} cannot be converted: {why}"


@contextmanager
def _untouched_on_failure(request: DeckRequest) -> Iterator[None]:
    """A new folder is free before the conversion, and is gone again when nothing came of it."""
    case, was_there = request.case, request.case.exists()
    if was_there and not request.is_forced and (not case.is_dir() or any(case.iterdir())):
        kind = "is not empty" if case.is_dir() else "is a file"
        raise WriteError(case, f"it exists and {kind}", "choose a new directory, or overwrite it with --force")
    try:
        yield
    except BaseException:
        with suppress(OSError):  # not empty: what is there may help to see what went wrong
            if not was_there:
                case.rmdir()
        raise
