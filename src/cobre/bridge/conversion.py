"""Convert one deck with a bridge.

It writes into a new directory, whose content is moved into the case when it is complete: the bridges open files by
their paths, and would follow symbolic links in an existing directory to files elsewhere. A deck in an archive is
unpacked for the bridge, and one that needs repairs is repaired in a copy.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cobre._native import die_with_parent
from cobre.bridge.archive import unpacked_deck
from cobre.bridge.environment import BRIDGE_0_18, BRIDGE_0_19, Bridge, DeckNotConvertedError, clean_environment
from cobre.bridge.gas_repairs import begins_with_last_week
from cobre.bridge.repairs import Model, Repair, find_repairs, offer
from cobre.core.file_names import CONDITIONS_FILE, CONFIG_FILE, PENALTIES_FILE, POST_STUDY_FILE, STAGES_FILE
from cobre.io.case_folder.case_files import CONVERSION_MANIFEST
from cobre.io.storage.atomic import WriteError, as_write_error, new_directory, scratch_directory
from cobre.io.storage.confined import move_file, no_links_below, remove_tree
from cobre.records import dataclass

CASE_PARTS = (
    "boundary",
    CONFIG_FILE,
    "constraints",
    CONVERSION_MANIFEST,
    CONDITIONS_FILE,
    PENALTIES_FILE,
    POST_STUDY_FILE,
    "scenarios",
    STAGES_FILE,
    "system",
)
"""Files that a forced conversion replaces; anything else in the directory stays."""


@dataclass(frozen=True, slots=True)
class DeckRequest:
    """The deck to convert, a folder or a zip archive, and the case to write.

    has_boundary_policy: convert the cost-to-go after the end of a DECOMP deck, too. is_forced: overwrite the case.
    is_repaired: make the repairs that the deck needs, in a copy.
    """

    model: Model
    deck: Path
    case: Path
    has_boundary_policy: bool = True
    is_forced: bool = False
    is_repaired: bool = False

    def arguments(self, folder: Path, target: Path, *options: str) -> list[str | Path]:
        """Return arguments of a bridge; a deck whose name begins with a dash is not taken as an option."""
        all_options = [*options, *(["--no-fcf"] if self.model == "decomp" and not self.has_boundary_policy else [])]
        return ["convert", self.model, *all_options, "--", folder, target]


def convert_deck(bridge: Bridge, request: DeckRequest) -> tuple[list[Repair], list[Repair]]:
    """Convert a deck; the bridge prints to the streams of this process.

    Returns the repairs that were made, and those that were not asked for. Raises DeckNotConvertedError.
    """
    with _conversion(bridge, request) as (folder, target, repairs):
        done = _run(bridge.command(*request.arguments(folder, target)), captures=False)
        if done.returncode:
            raise DeckNotConvertedError(
                _refusal(bridge, request, folder, f"{bridge.program.package} has printed the reason above")
            )
        offered = [] if request.is_repaired else find_repairs(folder, request.model, bridge.program)
    return repairs, offered


def convert_deck_quietly(bridge: Bridge, request: DeckRequest) -> dict[str, Any]:
    """Convert a deck without output; returns the bridge's report: `status`, `summary` and `diagnostics`.

    `repairs` is added: what was repaired, and `offered_repairs`: what was not asked for. Raises DeckNotConvertedError.
    """
    with _conversion(bridge, request) as (folder, target, repairs):
        done = _run(bridge.command(*request.arguments(folder, target, "--json")), captures=True)
        try:
            account = dict(json.loads(done.stdout))
        except ValueError:
            raise DeckNotConvertedError(_refusal(bridge, request, folder, done.stderr.strip()[-2000:])) from None
        if done.returncode:
            raise DeckNotConvertedError(_refusal(bridge, request, folder, "; ".join(_findings(account))))
        offered = [] if request.is_repaired else find_repairs(folder, request.model, bridge.program)
    return account | {"repairs": _as_records(repairs), "offered_repairs": _as_records(offered)}


def model_of(deck: Path) -> Model | None:
    """Return the model that a folder is a deck of, by its main file; None if it has neither."""
    names = {path.name.lower() for path in deck.iterdir()}
    if any(name.startswith("dadger.") for name in names):
        return "decomp"
    return "newave" if "dger.dat" in names else None


@contextmanager
def _conversion(bridge: Bridge, request: DeckRequest) -> Iterator[tuple[Path, Path, list[Repair]]]:
    """Yield the deck's folder, ready for the bridge, the directory to convert into, and the repairs that were made.

    When the block ends without an error, the case is completed with its origin and moved to its place.
    """
    with unpacked_deck(request.deck) as folder, _staging_directory(request) as target:
        if (model := model_of(folder)) is not None and model != request.model:
            raise DeckNotConvertedError(
                f"{request.deck}: this is a {model.upper()} deck, not one of {request.model.upper()}: "
                f"use `cobre convert {model}`"
            )
        repairs = find_repairs(folder, request.model, bridge.program) if request.is_repaired else []
        with _copy_with_repairs(folder, repairs) as ready:
            yield ready, target, repairs
            for repair in repairs:
                repair.finish(target)
            _record_origin(target / CONVERSION_MANIFEST, bridge, request, ready, repairs)


@contextmanager
def _copy_with_repairs(folder: Path, repairs: list[Repair]) -> Iterator[Path]:
    """Yield the deck, or a copy of it with its repairs."""
    if not repairs:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="cobre-deck-") as scratch:
        copy = Path(scratch) / "deck"
        copy.mkdir()
        for path in folder.iterdir():
            if path.is_file():
                shutil.copyfile(path, copy / path.name)  # without the permissions of a read-only deck
        for repair in repairs:
            repair.edit(copy)
        yield copy


def _record_origin(path: Path, bridge: Bridge, request: DeckRequest, folder: Path, repairs: list[Repair]) -> None:
    """Name the bridge and the repairs, and the deck instead of the directory that it was unpacked into."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # only informative
    content |= {"bridge": bridge.program.package, "source_dir": str(request.deck), "output_dir": str(request.case)}
    for entry in content.get("input_files", ()):
        name = str(entry.get("path", ""))
        if name.startswith(f"{folder}/"):
            entry["path"] = str(request.deck / name.removeprefix(f"{folder}/"))
    if repairs:
        content["repairs"] = _as_records(repairs)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _as_records(repairs: list[Repair]) -> list[dict[str, str]]:
    return [{"name": repair.name, "finding": repair.finding, "remedy": repair.remedy} for repair in repairs]


def _run(command: list[str], *, captures: bool) -> "subprocess.CompletedProcess[str]":
    """Run a bridge to its end. It is killed if this process dies, since nothing would use its output then."""
    with_us = partial(die_with_parent, os.getpid())
    return subprocess.run(  # preexec_fn is safe here: this process has no other threads that could hold a lock
        command, env=clean_environment(), capture_output=captures, text=True, check=False, preexec_fn=with_us
    )


def _findings(account: dict[str, Any]) -> list[str]:
    diagnostics = account.get("diagnostics", ())
    errors = [str(entry.get("summary")) for entry in diagnostics if entry.get("severity") == "error"]
    return errors or [json.dumps(account)]


def _refusal(bridge: Bridge, request: DeckRequest, folder: Path, why: str) -> str:
    """Explain why a deck is not converted, and which repairs may help; name the deck, not the bridge's copy."""
    why = why.replace(str(folder), str(request.deck))
    reason = f"{request.deck}: this {request.model.upper()} deck cannot be converted by {bridge.program.package}: {why}"
    if request.model == "decomp" and bridge.program == BRIDGE_0_19 and begins_with_last_week(folder):
        reason += (
            f"\n{BRIDGE_0_19.package} takes a study whose first week ends its month for one with monthly stages only; "
            f"{BRIDGE_0_18.package} converts it: add --using {BRIDGE_0_18.package}"
        )
    offered = [] if request.is_repaired else find_repairs(folder, request.model, bridge.program)
    return f"{reason}\n{offer(offered)}" if offered else reason


@contextmanager
def _staging_directory(request: DeckRequest) -> Iterator[Path]:
    """Yield an empty directory to convert into; its content becomes the case when the block ends without an error.

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
    """Replace the parts of a case; links with the name of a part are removed, their targets stay."""
    for name in {*CASE_PARTS, *(path.name for path in fresh.iterdir())}:
        remove_tree(case / name)
    for path in sorted(fresh.iterdir()):
        move_file(path, case / path.name)
