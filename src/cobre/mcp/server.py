"""The MCP server: tools and resources over standard input and output."""

import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import CallToolResult, Resource, TextContent, ToolAnnotations

from cobre import __version__
from cobre.comm import BackendError, CommError
from cobre.core.file_names import (
    CONVERGENCE,
    CONVERGENCE_FILE,
    EVENT_FILE,
    REPORT_FILE,
    STUDY_FILE,
    SUMMARY_FILE,
    TRAINING,
)
from cobre.errors import CobreError, error_details
from cobre.io.storage.confined import MAX_BYTES, read_untrusted
from cobre.mcp.jobs import MAX_STUDIES, Jobs
from cobre.mcp.roots import RefusedPathError, Roots, find_cases_and_runs
from cobre.mcp.tools import Tools
from cobre.records import dataclass
from cobre.runs.events import NothingToFollowError

# Results as resources: cobre://runs/FOLDER/RUN/FILE.

PREFIX = "cobre://runs"
MAX_EVENT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of result file. needs: the file of the run that it is made from."""

    file: str
    mime_type: str
    description: str
    needs: str
    read: Callable[[Path], str]


def run_uri(roots: Roots, run: Path, file: str) -> str:
    """Return the URI by which a client reads a file of a run."""
    root, relative = roots.name_of(run)
    return f"{PREFIX}/{quote(root)}/{quote(relative)}/{file}"


def available_results(roots: Roots) -> Iterator[tuple[str, str, ResultKind]]:
    """Yield URI, name and kind of all results that can be read now."""
    for run in find_cases_and_runs(roots).runs:
        for kind in KINDS.values():
            if (run / kind.needs).exists():
                yield run_uri(roots, run, kind.file), f"{'/'.join(roots.name_of(run))}: {kind.file}", kind


def read_result(roots: Roots, root: str, run: str, file: str) -> str:
    """Return the content of a result. Raises RefusedPathError, FileNotFoundError and errors of the study layer."""
    kind = KINDS[file]
    folder = roots.named(root, run)
    if not (folder / kind.needs).exists():
        raise FileNotFoundError(f"the run in {folder} has no {kind.needs} yet")
    return kind.read(folder)


def _file(name: str) -> Callable[[Path], str]:
    return lambda folder: read_untrusted(folder / name).decode(errors="replace")


def _events(folder: Path) -> str:
    """Return the event log; of a long one, the last complete lines."""
    content = read_untrusted(folder / EVENT_FILE, MAX_BYTES)
    if len(content) > MAX_EVENT_BYTES:
        content = content[-MAX_EVENT_BYTES:].split(b"\n", 1)[-1]
    return content.decode(errors="replace")


def _convergence(folder: Path) -> str:
    from cobre.runs.table_query import TableQuery, query_table

    answer = query_table(folder, TableQuery(CONVERGENCE, limit=10**9))
    return json.dumps([dict(row) for row in answer.rows])


def _report(folder: Path) -> str:
    """Return the report as written, or render it now; nothing is written into the run's folder."""
    from cobre.report.document import write_report

    stored = folder / REPORT_FILE
    if stored.exists():
        return read_untrusted(stored).decode()
    with tempfile.TemporaryDirectory(prefix="cobre-") as scratch:
        return write_report(folder, Path(scratch) / REPORT_FILE).read_text(encoding="utf-8")


_KINDS = (
    ResultKind(SUMMARY_FILE, "application/json", "How a run ended", SUMMARY_FILE, _file(SUMMARY_FILE)),
    ResultKind(STUDY_FILE, "application/json", "Stages, entities and settings", STUDY_FILE, _file(STUDY_FILE)),
    ResultKind(
        "convergence.json", "application/json", "Bounds by iteration", f"{TRAINING}/{CONVERGENCE_FILE}", _convergence
    ),
    ResultKind(EVENT_FILE, "application/jsonl", "The events of the run, line by line", EVENT_FILE, _events),
    ResultKind(REPORT_FILE, "text/html", "The report, for a browser", SUMMARY_FILE, _report),
)
KINDS: Mapping[str, ResultKind] = {kind.file: kind for kind in _KINDS}


INSTRUCTIONS = """\
Cobre trains and simulates hydrothermal planning policies (SDDP). A case is a folder of input files, a run is a \
folder of results. list_cases_and_runs lists both. Call validate_case before start_study, then study_status (with \
wait_s) until the study has finished, study_result for bounds and costs, and query_results for rows and statistics \
of the simulation. To find out what a change costs: read_case_file, change_case into a new folder, start_study \
there, then compare_runs. explain_failure explains why a stage has no solution. The upper bound is the mean of a \
sample and can be below the lower bound; compute_bound gives one that is valid under a risk measure, too. Paths \
outside the server's folders are refused."""

# Errors that a client can act on; all others are bugs, and are logged.
_EXPECTED_ERRORS = (CobreError, CommError, BackendError, NothingToFollowError, OSError)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


class RunServer(MCPServer[Any]):
    """The server; its list of resources is that of the runs that exist when a client asks."""

    def __init__(self, roots: Roots, max_studies: int) -> None:
        super().__init__("cobre", title="Cobre", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
        self._roots = roots
        self._add_tools(Tools(roots, Jobs(max_studies)))
        for kind in KINDS.values():
            self._add_template(kind)

    async def list_resources(self) -> list[Resource]:
        """List a resource for each result file of each run."""
        return [
            Resource(uri=uri, name=name, description=kind.description, mime_type=kind.mime_type)
            for uri, name, kind in available_results(self._roots)
        ]

    def _add_tools(self, tools: Tools) -> None:
        for tool, annotations in (
            (tools.list_cases_and_runs, _READS),
            (tools.validate_case, _READS),
            (tools.start_study, _WRITES),
            (tools.study_status, _READS),
            (tools.study_result, _READS),
            (tools.query_results, _READS),
            (tools.compare_runs, _READS),
            (tools.compute_bound, _WRITES),
            (tools.start_simulation, _WRITES),
            (tools.explain_failure, _READS),
            (tools.read_case_file, _READS),
            (tools.create_case, _WRITES),
            (tools.change_case, _WRITES),
            (tools.stop_study, _WRITES),
        ):
            self.add_tool(with_tool_errors(tool), annotations=annotations)

    def _add_template(self, kind: ResultKind) -> None:
        address = f"{PREFIX}/{{root}}/{{+run}}/{kind.file}"

        @self.resource(address, name=kind.file, description=kind.description, mime_type=kind.mime_type)
        def read(root: str, run: str) -> str:
            try:
                return read_result(self._roots, root, run, kind.file)
            except (FileNotFoundError, RefusedPathError) as error:
                raise ResourceNotFoundError(str(error)) from error
            except _EXPECTED_ERRORS as error:
                raise ResourceError(str(error)) from error


def with_tool_errors(tool: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """Wrap a tool: expected errors are returned to the client as text, and as JSON by kind, remedy and facts."""

    @functools.wraps(tool)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except _EXPECTED_ERRORS as error:
            text = TextContent(type="text", text=str(error))
            return CallToolResult(content=[text], structured_content=error_details(error), is_error=True)

    return guarded


def serve(folders: Sequence[Path], max_studies: int = MAX_STUDIES) -> None:
    """Serve until the client closes standard input. Raises RefusedPathError for a folder that does not exist."""
    RunServer(Roots(folders), max_studies).run("stdio")
