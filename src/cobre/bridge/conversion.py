"""One conversion: cobre-bridge reads the deck and writes the case.

It writes into a new directory, whose content is moved into the case when it is complete: cobre-bridge opens files by
their paths, and would follow symbolic links in an existing directory to files elsewhere.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cobre._native import die_with_parent
from cobre.bridge.environment import Bridge, clean_environment
from cobre.bridge.errors import DeckNotConvertedError
from cobre.core.case_file_names import CONFIG_FILE, STAGES_FILE
from cobre.io.storage.atomic import WriteError, as_write_error, new_directory, scratch_directory
from cobre.io.storage.confined import move_file, no_links_below, remove_tree

Model = Literal["newave", "decomp"]
CASE_PARTS = (
    "boundary",
    CONFIG_FILE,
    "constraints",
    "conversion_manifest.json",
    "initial_conditions.json",
    "penalties.json",
    "post_study_stages.json",
    "scenarios",
    STAGES_FILE,
    "system",
)
"""What a forced conversion replaces; anything else in the directory stays."""


@dataclass(frozen=True, slots=True)
class DeckRequest:
    """The deck to convert and the case to write.

    has_boundary_policy: convert the cost-to-go after the end of a DECOMP deck, too. is_forced: overwrite the case.
    """

    model: Model
    deck: Path
    case: Path
    has_boundary_policy: bool = True
    is_forced: bool = False

    def arguments(self, target: Path, *options: str) -> list[str | Path]:
        """Arguments of cobre-bridge; a deck whose name begins with a dash is not taken as an option."""
        given = [*options, *([] if self.has_boundary_policy else ["--no-fcf"])]
        return ["convert", self.model, *given, "--", self.deck, target]


def convert_deck(bridge: Bridge, request: DeckRequest) -> None:
    """Convert a deck; cobre-bridge prints to the streams of this process. Raises DeckNotConvertedError."""
    with _staging_directory(request) as target:
        done = _run(bridge.command(*request.arguments(target)), captures=False)
        if done.returncode:
            raise DeckNotConvertedError(_refusal(request, "cobre-bridge has printed the reason above"))


def convert_deck_quietly(bridge: Bridge, request: DeckRequest) -> dict[str, Any]:
    """Convert a deck without output; returns cobre-bridge's report: `status`, `summary` and `diagnostics`.

    Raises DeckNotConvertedError.
    """
    with _staging_directory(request) as target:
        done = _run(bridge.command(*request.arguments(target, "--json")), captures=True)
        try:
            account = dict(json.loads(done.stdout))
        except ValueError:
            raise DeckNotConvertedError(_refusal(request, done.stderr.strip()[-2000:])) from None
        if done.returncode:
            raise DeckNotConvertedError(_refusal(request, "; ".join(_findings(account))))
        return account


def _run(command: list[str], *, captures: bool) -> "subprocess.CompletedProcess[str]":
    """Run cobre-bridge to its end. It is killed if this process dies, since nothing would use its output then."""
    with_us = partial(die_with_parent, os.getpid())
    return subprocess.run(  # preexec_fn is safe here: this process has no other threads that could hold a lock
        command, env=clean_environment(), capture_output=captures, text=True, check=False, preexec_fn=with_us
    )


def _findings(account: dict[str, Any]) -> list[str]:
    found = account.get("diagnostics", ())
    return [str(entry.get("summary")) for entry in found if entry.get("severity") == "error"] or [json.dumps(account)]


def _refusal(request: DeckRequest, why: str) -> str:
    return f"{request.deck}: this {request.model.upper()} deck cannot be converted: {why}"


@contextmanager
def _staging_directory(request: DeckRequest) -> Iterator[Path]:
    """An empty directory to convert into; its content becomes the case when the block ends without an error.

    Raises WriteError if the case exists and may not be overwritten.
    """
    case = request.case
    if not case.exists() or (case.is_dir() and not any(case.iterdir())):
        with new_directory(case) as target:
            yield target
    elif request.is_forced and case.is_dir():
        with as_write_error(case), no_links_below(case), scratch_directory(case) as target:
            yield target
            _replace_parts(case, target)
    else:
        kind = "is not empty" if case.is_dir() else "is a file"
        raise WriteError(case, f"it exists and {kind}", "choose a new directory, or overwrite it with --force")


def _replace_parts(case: Path, fresh: Path) -> None:
    """Links with the name of a part are removed; what they point to stays."""
    for name in {*CASE_PARTS, *(path.name for path in fresh.iterdir())}:
        remove_tree(case / name)
    for path in sorted(fresh.iterdir()):
        move_file(path, case / path.name)
