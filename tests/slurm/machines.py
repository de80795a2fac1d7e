"""Machines of a cluster on one host: each has its own name, address, processes and shared memory.

They are namespaces, joined by a bridge. A machine that loses its power loses all its processes at once; unplugging its
cable first prevents any shutdown message. Its processes end with the one that made it, however that ends.
"""

import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

SUBNET = "10.78.0"
NAMED_SPACES = Path("/run/netns")
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
OWN_FILES = ("unshare", "--mount")
OWN_PROCESSES = ("unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
KNOW_NAMES = 'mount --bind "$0" /etc/hosts && mount --bind /dev/null /etc/resolv.conf'
ENTER = f'{KNOW_NAMES} && exec "$@"'
# Programs look for network devices under /sys, and slurmd for control groups.
OWN_DEVICES = "mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys && mount --move /mnt /sys/fs/cgroup"
OWN_SHARED_MEMORY = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
OWN_NAME = 'echo "$1" >/proc/sys/kernel/hostname && shift'
BOOT = f'{KNOW_NAMES} && {OWN_DEVICES} && {OWN_SHARED_MEMORY} && {OWN_NAME} && exec "$@"'


def ip(*words):
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def mounts():
    """Return whether something is mounted there; `is_mount` does not see a folder that is mounted on itself."""
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


class Machines:
    """Machines; the first carries the bridge. All know each other's names, unless `forgotten` says otherwise."""

    def __init__(self, folder, *names):
        self._names_file = Path(folder, "hosts")
        self._tag = f"{os.getpid():x}"
        self.addresses = {name: f"{SUBNET}.{number}" for number, name in enumerate(names, 1)}

    def __enter__(self):
        self._had_named_spaces = str(NAMED_SPACES) in mounts()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.addresses:
            subprocess.run(["ip", "netns", "del", self._space(name)], check=False, capture_output=True)
        # `ip` mounts the folder of names when it makes the first one, and never undoes it.
        if not self._had_named_spaces and str(NAMED_SPACES) in mounts() and not list(NAMED_SPACES.iterdir()):
            subprocess.run(["umount", NAMED_SPACES], check=False, capture_output=True)

    def on(self, name):
        """Return the prefix of a command that runs on that machine's network, with the names that it knows."""
        return (*self._network(name), *OWN_FILES, "sh", "-c", ENTER, str(self._names_file))

    def boot(self, name, command, **options):
        """Start the machine with one program, whose processes live no longer than it does."""
        words = (*self._network(name), *OWN_PROCESSES, "sh", "-c", BOOT, self._names_file, name, *command)
        return subprocess.Popen([*map(str, words)], **options)

    def pull(self, name):
        """Pull the machine's cable."""
        ip("-n", self._space(name), "link", "set", "cable", "down")

    def plug(self, name):
        """Reconnect the machine's cable."""
        ip("-n", self._space(name), "link", "set", "cable", "up")

    @contextmanager
    def forgotten(self, name):
        """Make all machines forget that name, running ones included."""
        self._write_names(but=name)
        try:
            yield
        finally:
            self._write_names()

    def _space(self, name):
        return f"cobre-{name}-{self._tag}"

    def _network(self, name):
        return (*WITH_PARENT, "nsenter", f"--net=/run/netns/{self._space(name)}")

    def _build(self):
        self._write_names()
        first, *others = self.addresses
        for name in self.addresses:
            ip("netns", "add", self._space(name))
            ip("-n", self._space(name), "link", "set", "lo", "up")
        ip("-n", self._space(first), "link", "add", "name", "switch", "type", "bridge")
        self._address(first, "switch")
        for name in others:
            peer = ("peer", "name", "cable", "netns", self._space(name))
            ip("-n", self._space(first), "link", "add", "name", f"to-{name}", "type", "veth", *peer)
            ip("-n", self._space(first), "link", "set", f"to-{name}", "master", "switch", "up")
            self._address(name, "cable")

    def _address(self, name, device):
        ip("-n", self._space(name), "address", "add", f"{self.addresses[name]}/24", "dev", device)
        ip("-n", self._space(name), "link", "set", device, "up")

    def _write_names(self, but=None):
        lines = [f"{address} {name}\n" for name, address in self.addresses.items() if name != but]
        self._names_file.write_text("127.0.0.1 localhost\n" + "".join(lines))  # in place: it is mounted


def power_off(process):
    """Power off a machine that was booted: end its first process, and the kernel ends the others."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with suppress(OSError, ProcessLookupError):
        for child in children.read_text().split():
            os.kill(int(child), 9)
    try:
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
