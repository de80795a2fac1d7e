"""Hosts of their own on one machine: network namespaces, joined by a cable that can be pulled."""

import os
import subprocess

NOT_PERMITTED = "network namespaces cannot be made here: run as root, with iproute2 installed"


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


class Network:
    """Two hosts, `left` and `right`, with a cable between them."""

    def __init__(self):
        tag = f"{os.getpid() % 100000:x}"
        self.left, self.right = f"cobre-l{tag}", f"cobre-r{tag}"
        self._hosts = []

    def __enter__(self):
        for host in (self.left, self.right):
            run("ip", "netns", "add", host)
            self._hosts.append(host)
            run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "-n", self.left, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.right)
        for number, host in enumerate(self._hosts, 1):
            run("ip", "-n", host, "address", "add", f"10.77.0.{number}/24", "dev", "cable")
            run("ip", "-n", host, "address", "add", f"fd77::{number}/64", "dev", "cable", "nodad")
            run("ip", "-n", host, "link", "set", "cable", "up")
        return self

    def __exit__(self, *_):
        for host in self._hosts:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)

    def on(self, host):
        """What to put before a command to run it there."""
        return ("ip", "netns", "exec", host)

    def set_link(self, state):
        """Pull the cable ("down") or put it back ("up")."""
        run("ip", "-n", self.right, "link", "set", "cable", state)
        if state == "up":  # an address of the sixth version goes with the link
            run("ip", "-n", self.right, "address", "replace", "fd77::2/64", "dev", "cable", "nodad")


def is_permitted():
    """Whether this process may make hosts."""
    name = f"cobre-try{os.getpid() % 100000:x}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
