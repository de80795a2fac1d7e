"""Simulation of a compose file: each service is a process on a separate host, with the settings of the file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml
from network_hosts import COORDINATOR

DEADLINE_S = 180
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


class ComposeWorld:
    """The services of a compose file, run in its folder."""

    def __init__(self, file, network):
        self._folder = file.parent
        self._network = network
        text = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[2]), file.read_text())
        self._file = yaml.safe_load(text)
        self.services = list(self._file["services"])

    def run(self, order=None):
        """Start all services, in any order; return the outcome of each, by name."""
        for number in range(len(self.services)):
            # Only rank 0 is looked for by name; on a compose network every service has one.
            self._network.write_names(number, rank0=[COORDINATOR])
        started = {name: self._start(name) for name in order or self.services}
        try:
            outputs = {name: process.communicate(timeout=DEADLINE_S) for name, process in started.items()}
        finally:
            for process in started.values():
                process.kill()
        return {name: (started[name].returncode, *outputs[name]) for name in self.services}

    def _start(self, name):
        service = self._file["services"][name]
        host_paths = self._places(service)
        words = [host_paths.get(word, word) for word in service["command"]]
        environment = {key: host_paths.get(value, value) for key, value in service["environment"].items()}
        command = [*self._network.on(self.services.index(name)), sys.executable, "-m", "cobre.cli", *words]
        # Nothing of our own environment but what the interpreter needs to find the package.
        base = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
        return subprocess.Popen(
            command, env=base | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _places(self, service):
        """Return the host path behind each path inside the container."""
        volumes = {volume["target"]: volume["source"] for volume in service["volumes"]}
        secrets = {f"/run/secrets/{name}": self._file["secrets"][name]["file"] for name in service["secrets"]}
        return {inside: str((self._folder / outside).resolve()) for inside, outside in (volumes | secrets).items()}


def write_secret(file: Path) -> None:
    """Write the secret as the comment at the top of the compose file says."""
    program = "import secrets; print(secrets.token_hex(32))"
    command = f"umask 077 && '{sys.executable}' -c '{program}' > '{file}'"
    subprocess.run(["sh", "-c", command], check=True)
