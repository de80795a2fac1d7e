"""The server: tools and resources, over standard input and output."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import CallToolResult, Resource, TextContent, ToolAnnotations

from cobre import __version__
from cobre.comm import BackendError, CommError
from cobre.errors import CobreError, error_details
from cobre.mcp.jobs import MAX_STUDIES, Jobs
from cobre.mcp.resources import KINDS, PREFIX, ResultKind, available, read_result
from cobre.mcp.roots import RefusedPathError, Roots
from cobre.mcp.tools import Tools
from cobre.runs.events import NothingToFollowError

INSTRUCTIONS = """\
Cobre trains and simulates hydrothermal planning policies (SDDP). A case is a folder of input files, a run is a \
folder of results. list_cases_and_runs lists both. Call validate_case before start_study, then study_status (with \
wait_s) until the study has finished, study_result for bounds and costs, and query_results for rows and statistics \
of the simulation. To find out what a change costs: read_case_file, change_case into a new folder, start_study \
there, then compare_runs. explain_failure explains why a stage has no solution. The upper bound is the mean of a \
sample and can lie below the lower bound; compute_bound gives one that is valid under a risk measure, too. Paths \
outside the server's folders are refused."""

# What a client can act upon; anything else is our fault, and goes to the log.
_EXPECTED_ERRORS = (CobreError, CommError, BackendError, NothingToFollowError, OSError)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


class RunServer(MCPServer[Any]):
    """Lists the runs that are there at the moment."""

    def __init__(self, roots: Roots, max_studies: int) -> None:
        super().__init__("cobre", title="Cobre", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
        self._roots = roots
        self._add_tools(Tools(roots, Jobs(max_studies)))
        for kind in KINDS.values():
            self._add_template(kind)

    async def list_resources(self) -> list[Resource]:
        """A resource for each result file of each run."""
        return [
            Resource(uri=uri, name=name, description=kind.description, mime_type=kind.mime_type)
            for uri, name, kind in available(self._roots)
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
    """A tool whose expected errors are returned to the client as text, and by kind, remedy and facts as JSON."""

    @functools.wraps(tool)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except _EXPECTED_ERRORS as error:
            text = TextContent(type="text", text=str(error))
            return CallToolResult(content=[text], structured_content=error_details(error), is_error=True)

    return guarded


def serve(folders: Sequence[Path], max_studies: int = MAX_STUDIES) -> None:
    """Serve until the client closes our standard input. Raises RefusedPathError for a folder that is not there."""
    RunServer(Roots(folders), max_studies).run("stdio")
