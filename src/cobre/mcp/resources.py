"""Results as resources: cobre://runs/FOLDER/RUN/FILE."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from cobre.io.storage.confined import MAX_BYTES, read_untrusted
from cobre.mcp.roots import Roots, find_cases_and_runs
from cobre.records import dataclass
from cobre.runs.files import CONVERGENCE, CONVERGENCE_FILE, EVENT_FILE, REPORT_FILE, STUDY_FILE, SUMMARY_FILE, TRAINING

PREFIX = "cobre://runs"
MAX_EVENT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A file that a run may have. needs: what must be there for it."""

    file: str
    mime_type: str
    description: str
    needs: str
    read: Callable[[Path], str]


def run_uri(roots: Roots, run: Path, file: str) -> str:
    """The URI by which a client reads a file of a run."""
    root, relative = roots.name_of(run)
    return f"{PREFIX}/{quote(root)}/{quote(relative)}/{file}"


def available(roots: Roots) -> Iterator[tuple[str, str, ResultKind]]:
    """Address, name and kind of everything that can be read now."""
    for run in find_cases_and_runs(roots).runs:
        for kind in KINDS.values():
            if (run / kind.needs).exists():
                yield run_uri(roots, run, kind.file), f"{'/'.join(roots.name_of(run))}: {kind.file}", kind


def read_result(roots: Roots, root: str, run: str, file: str) -> str:
    """The content. Raises RefusedPathError, FileNotFoundError and what the study layer raises."""
    kind = KINDS[file]
    folder = roots.named(root, run)
    if not (folder / kind.needs).exists():
        raise FileNotFoundError(f"the run in {folder} has no {kind.needs} yet")
    return kind.read(folder)


def _file(name: str) -> Callable[[Path], str]:
    return lambda folder: read_untrusted(folder / name).decode(errors="replace")


def _events(folder: Path) -> str:
    """The last whole lines of a log that may be long."""
    content = read_untrusted(folder / EVENT_FILE, MAX_BYTES)
    if len(content) > MAX_EVENT_BYTES:
        content = content[-MAX_EVENT_BYTES:].split(b"\n", 1)[-1]
    return content.decode(errors="replace")


def _convergence(folder: Path) -> str:
    from cobre.runs.table_query import TableQuery, query_table

    answer = query_table(folder, TableQuery(CONVERGENCE, limit=10**9))
    return json.dumps([dict(row) for row in answer.rows])


def _report(folder: Path) -> str:
    """The report as written, or made now; nothing is written into the run's folder."""
    from cobre.report import write_report

    stored = folder / REPORT_FILE
    if stored.exists():
        return read_untrusted(stored).decode()
    with tempfile.TemporaryDirectory(prefix="cobre-") as scratch:
        return write_report(folder, Path(scratch) / REPORT_FILE).read_text(encoding="utf-8")


_ALL = (
    ResultKind(SUMMARY_FILE, "application/json", "How a run ended", SUMMARY_FILE, _file(SUMMARY_FILE)),
    ResultKind(STUDY_FILE, "application/json", "Stages, entities and settings", STUDY_FILE, _file(STUDY_FILE)),
    ResultKind(
        "convergence.json", "application/json", "Bounds by iteration", f"{TRAINING}/{CONVERGENCE_FILE}", _convergence
    ),
    ResultKind(EVENT_FILE, "application/jsonl", "The events of the run, line by line", EVENT_FILE, _events),
    ResultKind(REPORT_FILE, "text/html", "The report, for a browser", SUMMARY_FILE, _report),
)
KINDS: Mapping[str, ResultKind] = {kind.file: kind for kind in _ALL}
