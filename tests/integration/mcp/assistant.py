"""A client of the assistant server: starts it as a process, and uses the protocol's own client."""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import wait_until

import cobre

CASE = Path(__file__).parents[3] / "examples" / "two_reservoirs"
IMPORTS = str(Path(cobre.__file__).parent.parent)


class ToolFailedError(Exception):
    """Error returned by a tool. details: its machine-readable form."""

    def __init__(self, text, details):
        super().__init__(text)
        self.details = details


class Assistant:
    """A client that calls tools and reads resources; blocks until the answer arrives."""

    def __init__(self, portal, client):
        self._portal = portal
        self._client = client

    def __getattr__(self, tool):
        return lambda **arguments: self.call(tool, arguments)

    def call(self, tool, arguments):
        answer = self._portal.call(self._client.call_tool, tool, arguments)
        text = answer.content[0].text
        if answer.is_error:
            raise ToolFailedError(text, answer.structured_content)
        assert json.loads(text) == answer.structured_content
        return answer.structured_content

    def tools(self):
        return self._portal.call(self._client.list_tools).tools

    def resources(self):
        return {resource.uri: resource for resource in self._portal.call(self._client.list_resources).resources}

    def templates(self):
        return self._portal.call(self._client.list_resource_templates).resource_templates

    def read(self, uri):
        return self._portal.call(self._client.read_resource, uri).contents[0].text

    def start(self, output, **options):
        """Start a study that writes no report, which most tests do not need."""
        return self.start_study(case="case", output=output, **{"report": False, "workers": 1, **options})

    def finished(self, job):
        return wait_until(lambda: self._ended(job), f"{job} has ended")

    def _ended(self, job):
        status = self.study_status(job=str(job), wait_s=30)
        return status if status["state"] not in ("starting", "running") else None

    def iterating(self, job):
        """Wait until the study has finished an iteration."""
        wait_until(lambda: self.study_status(job=str(job)).get("last_iteration"), "an iteration is over")


@contextmanager
def assistant(*roots, options=()):
    arguments = ["-m", "cobre.cli", "mcp", *options]
    for root in roots:
        arguments += ["--root", str(root)]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, (IMPORTS, os.environ.get("PYTHONPATH"))))}
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(stdio_client(server))) as client:
        yield Assistant(portal, client)
