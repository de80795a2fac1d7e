"""Run every published deck of a folder with Cobre and with the peer: `python benchmarks/decks.py [FOLDER]`.

Each archive or deck folder is converted by novomodelo-bridge and by cobre-bridge (with the repairs that it needs), each
case folder is taken as it is; folders below are searched, too. Then one iteration of one pass is trained and two
scenarios are simulated, on one thread, here and by the peer of the case's format where it is installed. A deck that
fails is a row that says so; the others go on. The table is printed row by row, and written to build/decks.md and
build/decks.json.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from cobre.bridge.archive import CASE_INDEX, is_archive, unpack_decks  # noqa: E402
from cobre.bridge.conversion import DeckRequest, Model, convert_deck_quietly, model_of  # noqa: E402
from cobre.bridge.environment import (  # noqa: E402
    PROGRAMS,
    Bridge,
    NoBridgeError,
    bridge_at,
    managed_bridge,
)
from cobre.errors import CobreError  # noqa: E402
from collectives.environments import UnavailableError  # noqa: E402
from sddp.peer_environment import COBRE_PYTHON, NOVOMODELO, Peer, peer_environment  # noqa: E402
from sddp.studies import DECKS  # noqa: E402

PEER_PROGRAM = ROOT / "benchmarks" / "sddp" / "programs" / "run_deck.py"
MODULES = {COBRE_PYTHON.folder: "cobre", NOVOMODELO.folder: "novomodelo"}
PEERS = {"novomodelo-bridge": NOVOMODELO.folder, "cobre-bridge": COBRE_PYTHON.folder}
ARCHIVES = {".zip", ".7z", ".rar", ".tar", ".gz", ".tgz"}  # of which only .zip can be read: the others get a row
ZIPPED_DOCUMENTS = {".xlsx", ".xlsm", ".docx", ".pptx", ".ods"}
ITERATIONS, SCENARIOS = 1, 2
MAX_LIBRARY_SHARE = 1e-3  # largest accepted share of solves by HiGHS
HEADINGS = (
    *("deck", "converted by", "format", "accepted", "solves", "library", "first bound", "peer's bound", "difference"),
    *("CPU s", "peer's CPU s", "remarks"),
)
REMARK_CHARACTERS = 110


@dataclass(slots=True)
class Row:
    """Outcome of one deck. difference: of the first bounds, relative to the peer's."""

    deck: str
    bridge: str = ""
    case_format: str = ""
    is_accepted: bool = False
    solves: int | None = None
    library_solves: int | None = None
    first_bound: float | None = None
    peer_bound: float | None = None
    cpu_s: float | None = None
    peer_cpu_s: float | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def difference(self) -> float | None:
        if self.first_bound is None or self.peer_bound is None:
            return None
        return abs(self.first_bound - self.peer_bound) / max(abs(self.peer_bound), 1e-300)

    def cells(self) -> list[str]:
        """Return the cells of the row as text."""
        return [
            self.deck,
            self.bridge,
            self.case_format,
            "yes" if self.is_accepted else "NO",
            _text(self.solves, "d"),
            _text(self.library_solves, "d"),
            _text(self.first_bound, ".3f"),
            _text(self.peer_bound, ".3f"),
            _text(self.difference, ".1e"),
            _text(self.cpu_s, ".1f"),
            _text(self.peer_cpu_s, ".1f"),
            "; ".join(remark[:REMARK_CHARACTERS] for remark in self.remarks),
        ]

    def document(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return asdict(self) | {"difference": self.difference}


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


@dataclass(frozen=True, slots=True)
class Source:
    """A deck to convert, or a case that exists already (without a model); or why an entry cannot be read."""

    name: str
    path: Path
    model: Model | None = None
    problem: str = ""


def sources_in(folder: Path, scratch: Path) -> Iterator[Source]:
    """Yield each deck and case of a folder and its subfolders, by name; archives are unpacked one by one."""
    archives = 0
    for path in _entries(folder):
        name = str(path.relative_to(folder))
        if path.is_dir():
            yield Source(name, path, None if (path / "stages.json").exists() else model_of(path) or "newave")
            continue
        archives += 1
        try:
            decks = unpack_decks(path, scratch / str(archives))
        except CobreError as error:
            yield Source(name, path, problem=str(error))
            continue
        for deck in decks:
            inner = str(deck.relative_to(scratch / str(archives)))
            stem = name.removesuffix(path.suffix)
            yield Source(stem if len(decks) == 1 else f"{stem}/{inner}", deck, model_of(deck) or "newave")
        shutil.rmtree(scratch / str(archives), ignore_errors=True)


def _entries(folder: Path) -> Iterator[Path]:
    """Yield cases, decks and archives; any other folder is searched."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if (path / "stages.json").exists() or _is_deck(path):
                yield path
            else:
                yield from _entries(path)
        elif path.suffix.lower() in ARCHIVES or (is_archive(path) and path.suffix.lower() not in ZIPPED_DOCUMENTS):
            yield path


def _is_deck(folder: Path) -> bool:
    return any(entry.name.lower() == CASE_INDEX for entry in folder.iterdir())


@cache
def find_bridge(name: str) -> Bridge:
    """Return the bridge installed beside the peer, or else the one that `cobre convert` uses."""
    with suppress(NoBridgeError):
        return bridge_at(PEERS[name], PROGRAMS[name])
    return managed_bridge(lambda text: print(text, file=sys.stderr), PROGRAMS[name])


def run_source(source: Source, bridge: str, folder: Path, options: argparse.Namespace) -> Row:
    """Convert, validate, train and simulate one deck; whatever fails is in the row."""
    row, case = Row(source.name, bridge), folder / "case"
    if source.problem:
        row.remarks.append(source.problem)
        return row
    try:
        if source.model is None:
            shutil.copytree(source.path, case, copy_function=_copy_writable)
            case.chmod(0o755)
        else:
            request = DeckRequest(source.model, source.path, case, has_boundary_policy=False, is_repaired=True)
            account = convert_deck_quietly(find_bridge(bridge), request)
            row.remarks += [f"repaired: {repair['name']}" for repair in account["repairs"]]
        shorten(case)
        run_ours(row, case, folder / "cobre", options.timeout)
        if not options.alone:
            run_peer(row, case, folder / "peer", options.timeout)
    except Exception as error:  # noqa: BLE001  a deck that fails is a row, whatever the failure
        row.remarks.append(f"{type(error).__name__}: {_last_line(str(error))}")
    return row


def _copy_writable(source: str, target: str) -> str:
    """Copy without the permissions of a read-only archive."""
    shutil.copyfile(source, target)
    return target


def shorten(case: Path) -> None:
    """Shorten a case to one iteration of one pass and two scenarios; trees are enumerated, as their cases ask."""
    for folder in case.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
    path = case / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    training, simulation = config.setdefault("training", {}), config.setdefault("simulation", {})
    training["stopping_rules"] = [{"type": "iteration_limit", "limit": ITERATIONS}]
    training["stopping_mode"] = "any"
    if training.get("selection", {}).get("method") != "enumerated":
        training["selection"] = {"method": "sampled", "forward_passes": 1}
    simulation["enabled"] = True
    if simulation.get("selection", {}).get("method") != "enumerated":
        simulation["selection"] = {"method": "sampled", "num_scenarios": SCENARIOS}
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def run_ours(row: Row, case: Path, output: Path, timeout_s: float) -> None:
    """Run a case with Cobre: validate, train and simulate."""
    cobre = [sys.executable, "-m", "cobre.cli"]
    checked = json.loads(timed([*cobre, "validate", str(case), "--json"], timeout_s).output or "{}")
    row.case_format = str(checked.get("format") or case_format(case))
    row.is_accepted = bool(checked.get("is_valid"))
    if not row.is_accepted:
        errors = [str(entry.get("message", entry)) for entry in checked.get("errors", ())]
        row.remarks.append(f"{len(errors)} errors: {errors[0] if errors else '?'}")
        return
    settings = ("--workers", "1", "--threads", "1", "--quiet", "--no-report", "--json")
    done = timed([*cobre, "run", str(case), "--output", str(output), *settings], timeout_s)
    row.cpu_s = done.cpu_s
    try:
        summary = json.loads(done.output.splitlines()[-1])
        row.first_bound = summary["lower_bound"]
    except (ValueError, IndexError, KeyError):
        row.remarks.append(f"failed: {_last_line(done.errors or done.output)}")
        return
    row.solves = sum(phase["solves"] for phase in summary["solver"].values())
    row.library_solves = sum(phase["library_solves"] for phase in summary["solver"].values())


def case_format(case: Path) -> str:
    """Return 0.18 or 0.19, by the version of the bridge that wrote the case; 0.18 if it is unknown."""
    try:
        version = str(json.loads((case / "conversion_manifest.json").read_text(encoding="utf-8"))["bridge_version"])
    except (OSError, ValueError, KeyError):
        return "0.18"
    return ".".join(version.split(".")[:2])


def run_peer(row: Row, case: Path, output: Path, timeout_s: float) -> None:
    """Run the peer program of the case's format, if it is installed, and add its bound and CPU time to the row."""
    peer = COBRE_PYTHON if row.case_format.startswith("0.18") else NOVOMODELO
    python = _interpreter(peer)
    if python is None:
        row.remarks.append(f"{peer.folder.name} is not installed")
        return
    done = timed([str(python), "-I", str(PEER_PROGRAM), MODULES[peer.folder], str(case), str(output)], timeout_s)
    row.peer_cpu_s = done.cpu_s
    try:
        row.peer_bound = json.loads(done.output.splitlines()[-1])["first_bound"]
    except (ValueError, IndexError, KeyError):
        row.remarks.append(f"the peer fails: {_last_line(done.errors)}")


def _interpreter(peer: Peer) -> Path | None:
    if not (peer.folder / "bin" / "python").exists():
        return None
    try:
        environment = peer_environment(peer)
    except UnavailableError:
        return None
    return environment.python if environment.version() else None


@dataclass(frozen=True, slots=True)
class Finished:
    """Output of a program, and its CPU seconds, including its children."""

    output: str
    errors: str
    cpu_s: float


def timed(command: Sequence[str], timeout_s: float) -> Finished:
    """Run a program on one thread of every library; it is killed after the timeout, which its errors then say."""
    environ = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environ)
        deadline, is_late = time.monotonic() + timeout_s, False
        while True:
            pid, _, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not is_late and time.monotonic() > deadline:
                process.kill()
                is_late = True
            time.sleep(0.05)
        process.returncode = 0  # reaped by wait4, without informing Popen
        output.seek(0)
        errors.seek(0)
        messages = f"stopped after {timeout_s:.0f} s" if is_late else errors.read()
        return Finished(output.read(), messages, usage.ru_utime + usage.ru_stime)


def _last_line(text: str) -> str:
    lines = [line.strip(" │") for line in text.strip().splitlines() if any(map(str.isalnum, line))]
    return lines[-1] if lines else "no output"


def write_files(rows: Sequence[Row], target: Path) -> None:
    """Write the table as Markdown and JSON; called after every deck, so that an interrupted run keeps its rows."""
    target.mkdir(parents=True, exist_ok=True)
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row.cells()) + " |" for row in rows]
    (target / "decks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (target / "decks.json").write_text(json.dumps([row.document() for row in rows], indent=2) + "\n", encoding="utf-8")


def print_row(cells: Sequence[str]) -> None:
    """Print the row in columns of fixed width, remarks last."""
    widths = (32, 17, 6, 8, 7, 7, 20, 20, 10, 8, 12)
    name, *numbers = [cell.rjust(width) for cell, width in zip(cells[:-1], widths, strict=True)]
    print("  ".join([name.strip().ljust(widths[0]), *numbers, cells[-1]]), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all; returns how many decks are not accepted or fail."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DECKS, help="archives, deck folders and cases")
    parser.add_argument("--only", default="*", help="decks whose names match, such as 'decomp*'")
    parser.add_argument("--bridge", choices=tuple(PROGRAMS), help="convert with this one alone (default: both)")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for each program and deck")
    parser.add_argument("--output", type=Path, default=ROOT / "build", help="where decks.md and decks.json go")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        print(f"{options.folder}: there is no such folder; name one with archives of decks", file=sys.stderr)
        return 2
    rows: list[Row] = []
    print_row(HEADINGS)
    with tempfile.TemporaryDirectory(prefix="cobre-decks-") as scratch:
        for source in sources_in(options.folder, Path(scratch) / "unpacked"):
            if not fnmatch.fnmatch(source.name, options.only):
                continue
            for bridge in _bridges(source, options.bridge):
                work = Path(scratch) / "work"
                work.mkdir()
                rows.append(run_source(source, bridge, work, options))
                shutil.rmtree(work, ignore_errors=True)
                print_row(rows[-1].cells())
                write_files(rows, options.output)
    if not rows:
        print(f"{options.folder}: no archive, deck or case matches {options.only!r}", file=sys.stderr)
        return 2
    return summarize(rows, options.output)


def _bridges(source: Source, wanted: str | None) -> Sequence[str]:
    """Return the bridges that convert a deck; a case, or an unreadable source, needs none."""
    if source.model is None:
        return ("",)
    return tuple(PROGRAMS) if wanted is None else (wanted,)


def summarize(rows: Sequence[Row], target: Path) -> int:
    """Print totals; returns how many decks do not run, or have too many solves by the library."""
    solves = sum(row.solves or 0 for row in rows)
    library = sum(row.library_solves or 0 for row in rows)
    failed = sum(row.first_bound is None for row in rows)
    slow = sum((row.library_solves or 0) > MAX_LIBRARY_SHARE * (row.solves or 0) for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} run; the library did {library} of {solves} solves", end="")
    print(f", and more than one in a thousand in {slow} decks" if slow else "")
    print(f"the table is in {target / 'decks.md'}")
    return min(failed + slow, 100)


if __name__ == "__main__":
    sys.exit(main())
