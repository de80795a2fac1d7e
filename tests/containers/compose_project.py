"""A compose file run by podman: each service becomes a container with all its settings."""

import os
import re
import time

import yaml
from podman import LIMITS, podman

DEADLINE_S = 600
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def leftovers():
    """Return the containers and networks of this machine."""
    names = podman("ps", "--all", "--format={{.Names}}"), podman("network", "ls", "--format={{.Name}}")
    return [sorted(listing.split()) for listing in names]


class ComposeProject:
    """A project: `with` creates the network and starts all services; leaving the block removes everything."""

    def __init__(self, file, **variables):
        text = _VARIABLE.sub(lambda match: str(variables.get(match[1], match[2])), file.read_text())
        self._file = yaml.safe_load(text)
        self._folder = file.parent
        self._tag = f"{self._file['name']}-{os.getpid()}"
        self.services = list(self._file["services"])

    def __enter__(self):
        [settings] = self._file["networks"].values()
        try:
            podman("network", "create", *(["--internal"] if settings["internal"] else []), self._network)
            for name in self.services:
                self._start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        containers = [self.container(name) for name in self.services]
        podman("rm", "--force", "--ignore", "--time=0", *containers, check=False)
        podman("network", "rm", "--force", self._network, check=False)

    def container(self, name):
        return f"{self._tag}-{name}"

    def exit_codes(self):
        """Return the exit codes of all services once they have ended."""
        return {name: int(podman("wait", self.container(name), limit_s=DEADLINE_S)) for name in self.services}

    def logs(self, name):
        done = podman("logs", self.container(name), check=False)
        return done.stdout + done.stderr

    def wait_until(self, condition, what):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not in time\n{''.join(map(self.logs, self.services))}"
            time.sleep(0.1)

    @property
    def _network(self):
        return f"{self._tag}-ranks"

    def _start(self, name):
        service = self._file["services"][name]
        options = [
            f"--name={self.container(name)}",
            f"--network={self._network}:alias={name}",
            f"--user={service['user']}",
            f"--memory={service['mem_limit']}",
            *LIMITS,
            *(["--read-only"] if service["read_only"] else []),
            *(["--init"] if service["init"] else []),
            *(f"--cap-drop={one}" for one in service["cap_drop"]),
            *(f"--security-opt={one.replace(':true', '')}" for one in service["security_opt"]),
            *(f"--tmpfs={one}" for one in service["tmpfs"]),
            *(f"--env={key}={value}" for key, value in service["environment"].items()),
            *self._volumes(service),
        ]
        podman("run", "--detach", *options, service["image"], *service["command"])

    def _volumes(self, service):
        for volume in service["volumes"]:
            source = (self._folder / volume["source"]).resolve()
            yield f"--volume={source}:{volume['target']}:{'ro' if volume.get('read_only') else 'rw'}"
        for name in service["secrets"]:
            source = (self._folder / self._file["secrets"][name]["file"]).resolve()
            yield f"--volume={source}:/run/secrets/{name}:ro"
