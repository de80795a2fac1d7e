"""Hosts on one machine: network namespaces, joined by links that can be cut, throttled and broken.

Host 0 is the coordinator's, and a router: every other host has a cable to it alone, and reaches the others
through it, unless it does not forward. All that is needed is iproute2; delays (netem) are not used, because not every
kernel has them.
"""

import os
import shutil
import subprocess
from pathlib import Path

NOT_PERMITTED = "network namespaces cannot be made here: run as root, with iproute2 and util-linux installed"
COORDINATOR, COORDINATOR_V6 = "10.77.0.1", "fd77::1"
NOBODY = "02:00:00:00:00:99"  # an unused link address: packets sent there are lost silently
NAMES = Path("/etc/netns")  # where `ip netns exec` finds a host's own /etc files
ENTER = 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"'


def run(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


class Network:
    """Host 0 and as many others as requested.

    families: of their addresses, 4 and 6. forwards: whether host 0 is a router.
    """

    def __init__(self, others=2, families=(4, 6), forwards=True):
        tag = f"{os.getpid() % 100000:x}"
        self.hosts = [f"cobre{number}-{tag}" for number in range(others + 1)]
        self._families = families
        self._forwards = forwards

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)
            shutil.rmtree(NAMES / host, ignore_errors=True)

    def on(self, number):
        """Return the prefix that runs a command on that host, under that host's name and in the same process."""
        host = self.hosts[number]
        return ("ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", ENTER, host)

    def pull(self, number):
        """Pull the cable of a host."""
        self._ip(number, "link", "set", "cable", "down")

    def plug(self, number):
        """Reconnect the cable of a host."""
        self._ip(number, "link", "set", "cable", "up")
        self._route(number)  # the route was lost with the link

    def remove(self, number):
        """Remove a host without closing its connections; the caller ends its processes."""
        self._ip(number, "link", "del", "cable")

    def swallow(self, number, *, inward=True, outward=True, families=None):
        """Drop packets silently, as a firewall does: those to the host (inward), those from it (outward)."""
        for family in families or self._families:
            here, there = _addresses(number, family)
            if outward:
                self._ip(number, "neigh", "replace", there, "lladdr", NOBODY, "dev", "cable", "nud", "permanent")
            if inward:
                self._ip(0, "neigh", "replace", here, "lladdr", NOBODY, "dev", f"cable{number}", "nud", "permanent")

    def swallow_between(self, one, other):
        """Drop packets from the first host to the second silently; both still reach host 0."""
        words = ("from", _addresses(one, 4)[0], "to", _addresses(other, 4)[0], "blackhole")
        self._ip(0, "-4", "rule", "add", *words)

    def slow_down(self, number, rate):
        """Limit the rate of a host's link, in both directions."""
        for host, device in ((self.hosts[number], "cable"), (self.hosts[0], f"cable{number}")):
            shape = ("rate", rate, "burst", "32k", "latency", "200ms")
            run("tc", "-n", host, "qdisc", "replace", "dev", device, "root", "tbf", *shape)

    def write_names(self, number, **addresses):
        """Set the addresses of names on that host; call it before a process starts there."""
        lines = [f"{address} {name}\n" for name, known in addresses.items() for address in known]
        folder = NAMES / self.hosts[number]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "resolv.conf").write_text("")  # no name server: lookups outside the list fail at once
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))  # in place: it may be mounted

    def _build(self):
        for number, host in enumerate(self.hosts):
            run("ip", "netns", "add", host)
            self._ip(number, "link", "set", "lo", "up")
        if self._forwards:
            switches = "/proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding"
            run("ip", "netns", "exec", self.hosts[0], "sh", "-c", f"echo 1 | tee {switches}")
        for family in self._families:
            self._ip(0, "address", "replace", (COORDINATOR, COORDINATOR_V6)[family == 6], "dev", "lo")
        for number, host in enumerate(self.hosts[1:], 1):
            peer = ("peer", "name", "cable", "netns", host)
            self._ip(0, "link", "add", "name", f"cable{number}", "type", "veth", *peer)
            for family in self._families:
                here, there = _addresses(number, family)
                self._assign(0, there, f"cable{number}")
                self._assign(number, here, "cable")
            self._ip(0, "link", "set", f"cable{number}", "up")
            self.plug(number)

    def _assign(self, number, address, device):
        is_v6 = ":" in address
        options = ("nodad",) if is_v6 else ()
        self._ip(number, "address", "replace", f"{address}/{64 if is_v6 else 24}", "dev", device, *options)

    def _route(self, number):
        for family in self._families:
            here, there = _addresses(number, family)
            self._assign(number, here, "cable")
            self._ip(number, f"-{family}", "route", "replace", "default", "via", there, "dev", "cable")

    def _ip(self, number, *words):
        options = [word for word in words if word in ("-4", "-6")]
        run("ip", "-n", self.hosts[number], *options, *(word for word in words if word not in options))


def _addresses(number, family):
    """Return the addresses of a host, and of its neighbour at the other end of the cable."""
    return (f"10.77.{number}.2", f"10.77.{number}.1") if family == 4 else (f"fd77:{number}::2", f"fd77:{number}::1")


def is_permitted():
    """Return whether this process may create hosts."""
    name = f"cobre-try{os.getpid() % 100000:x}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
        run("unshare", "--uts", "true")
    except OSError:
        return False
    return True
