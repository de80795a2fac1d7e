"""tcp beside gloo on hosts of their own: network namespaces at a switch, each with a link of limited rate.

Needs root, iproute2 and the tbf queueing discipline; torch in `.venv-gloo` is made on first use. Three rounds with 4, 8
and 16 hosts, kept in benchmarks/results/net.md: `python benchmarks/bench_hosts.py`.
A part of it: `... --hosts 4 --rate 100 --cases "broadcast 20 MB" --rounds 1 --output ""`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cobre.comm import TcpConfig
from collectives.cases import Case, Kind
from collectives.contenders.base import WORLD_TIMEOUT_S, WorldFailedError
from collectives.contenders.processes import Command, environ_for, run_to_end
from collectives.environments import UnavailableError, gloo_environment
from collectives.machine import describe_machine
from collectives.ranks.hosts import LARGE, PORT, address, cases
from collectives.timing import Durations, summarise

RESULTS = Path(__file__).resolve().parent / "results"
HOSTS, RATE_MBIT, ROUNDS = (4, 8, 16), 1000, 3
BURST = "128k"  # twice the largest packet that the kernel hands to the queue at once
SECTION = "## Hosts with links of their own"
STAR = "cobre star"
GLOO, GLOO_RING = "torch gloo", "gloo ring"
CONTENDERS = ("cobre tcp", STAR, GLOO, GLOO_RING)


def link_seconds(case: Case, hosts: int, rate_mbit: float) -> float:
    """Return the least time that the links allow, in seconds: the most that a host sends or receives, at link rate."""
    if case.kind is Kind.BROADCAST:
        return case.nbytes * 8 / (rate_mbit * 1e6)
    counts = case.counts(hosts)
    return (case.elements - min(counts)) * 8 * 8 / (rate_mbit * 1e6)


@contextmanager
def switched_hosts(count: int, rate_mbit: float) -> Iterator[list[str]]:
    """Make network namespaces, each with an interface `nic` at one switch, and limit what it sends and receives."""
    tag = f"{os.getpid() % 100000:x}"
    switch, hosts = f"cobre-sw-{tag}", [f"cobre-h{number}-{tag}" for number in range(count)]
    shape = ("root", "tbf", "rate", f"{rate_mbit}mbit", "burst", BURST, "latency", "100ms")
    try:
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for number, host in enumerate(hosts):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            peer = ("peer", "name", "nic", "netns", host)
            ip("-n", switch, "link", "add", "name", f"port{number}", "type", "veth", *peer)
            ip("-n", switch, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", host, "address", "add", f"{address(number)}/24", "dev", "nic")
            ip("-n", host, "link", "set", "nic", "up")
            run_tool("tc", "-n", host, "qdisc", "replace", "dev", "nic", *shape)
            run_tool("tc", "-n", switch, "qdisc", "replace", "dev", f"port{number}", *shape)
        yield hosts
    finally:
        for name in (*hosts, switch):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ip(*words: str) -> None:
    """Call `ip`."""
    run_tool("ip", *words)


def run_tool(*words: str) -> None:
    """Run a command; raise `UnavailableError` with its stderr if it fails."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"{' '.join(words)}: {done.stderr.strip()}")


def run_world(contender: str, hosts: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Run one contender with one rank on each host; return seconds by case."""
    with tempfile.TemporaryDirectory(prefix="cobre-hosts-") as folder:
        ranks = [rank_command(contender, rank, hosts, names, folder) for rank in range(len(hosts))]
        run_to_end(ranks, Path(folder), WORLD_TIMEOUT_S)
        by_rank: list[Durations] = [
            json.loads((Path(folder) / f"rank{rank}.json").read_text()) for rank in range(len(hosts))
        ]
    return summarise(by_rank)


def rank_command(contender: str, rank: int, hosts: Sequence[str], names: Sequence[str], folder: str) -> Command:
    """Return the command of one rank on its host, which writes its durations to the folder."""
    is_gloo = contender in (GLOO, GLOO_RING)
    environment = gloo_environment().folder if is_gloo else Path(sys.prefix)
    words = ["ip", "netns", "exec", hosts[rank], str(environment / "bin" / "python")]
    words += ["-m", "collectives.ranks.hosts", folder, *names, "--rank", str(rank), "--size", str(len(hosts))]
    words += ["--gloo-ring"] if contender == GLOO_RING else []
    variables = {"GLOO_SOCKET_IFNAME": "nic"} if is_gloo else cobre_variables(contender, rank, len(hosts))
    return Command(words, environ_for(environment, **variables))


def cobre_variables(contender: str, rank: int, size: int) -> Mapping[str, str]:
    """Return the variables with which a Cobre rank joins its world."""
    ring = 0 if contender == STAR else None
    return TcpConfig(address(0), rank, size, PORT, secret="a secret of the benchmark", ring_bytes=ring).to_env()


def main() -> int:
    """Measure, print and store; return 1 if our contender failed."""
    options = parse()
    contenders, names = options.contenders.split(","), options.cases.split(",")
    if {GLOO, GLOO_RING} & set(contenders):
        gloo_environment().ensure()
    rounds: dict[int, dict[str, list[dict[str, float]]]] = {}
    machine, failed = describe_machine(), []
    for size in map(int, options.hosts.split(",")):
        rounds[size] = {contender: [] for contender in contenders}
        with switched_hosts(size, options.rate) as hosts:
            for number in range(options.rounds):
                for contender in contenders[number % len(contenders) :] + contenders[: number % len(contenders)]:
                    begin = time.monotonic()
                    try:
                        rounds[size][contender].append(run_world(contender, hosts, names))
                    except WorldFailedError as error:
                        failed.append(contender)
                        print(f"{size} hosts, {contender}: {error}", file=sys.stderr, flush=True)
                    print(f"{size} hosts, {contender}: {time.monotonic() - begin:.0f} s", flush=True)
    lines = section(rounds, names, options.rate, options.rounds, machine)
    print("\n".join(lines))
    if options.output:
        store(Path(options.output), lines, {"rate_mbit": options.rate, "machine": machine, "rounds": rounds})
    return 1 if CONTENDERS[0] in failed else 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default=",".join(map(str, HOSTS)), help="numbers of hosts (4,8,16)")
    parser.add_argument("--rate", type=float, default=RATE_MBIT, help="of every link, in Mb/s (1000)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of every contender ({ROUNDS})")
    parser.add_argument("--cases", default=",".join(case.name for case in cases()), help="rows of the table (all)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="columns of the table (all)")
    parser.add_argument("--output", default=str(RESULTS), help="folder for the results; empty: none")
    return parser.parse_args()


def section(
    rounds: Mapping[int, Mapping[str, Sequence[Mapping[str, float]]]],
    names: Sequence[str],
    rate_mbit: float,
    count: int,
    machine: Mapping[str, str],
) -> list[str]:
    """Return the lines of the section of the page that this benchmark writes."""
    facts = ", ".join(f"{name}: {fact}" for name, fact in machine.items())
    lines = [
        SECTION,
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `make bench-net` (`benchmarks/bench_hosts.py`); {facts}. Network",
        f"namespaces at a switch, {rate_mbit:g} Mb/s each way per host, one rank per host, {count} round(s): the",
        "median round, in milliseconds. All hosts share the cores of this machine. Links: what they allow, without",
        "headers: the most that a host must receive or send. Star: everything through rank 0",
        "(`COBRE_TCP_RING_BYTES=0`). torch gloo: gathers in the fastest of three ways, for small ones messages between",
        "all pairs of hosts; gloo ring: its ring alone.",
    ]
    for size, by_contender in rounds.items():
        shown = [contender for contender in by_contender if by_contender[contender]]
        lines += [
            "",
            f"### {size} hosts",
            "",
            f"| ms | links | {' | '.join(shown)} | tcp / links | tcp / gloo | tcp / gloo ring |",
        ]
        lines.append(f"| --- | --- |{' --- |' * len(shown)} --- | --- | --- |")
        for case in [case for case in cases() if case.name in names]:
            medians = {one: statistics.median(turn[case.name] for turn in by_contender[one]) for one in shown}
            allowed = link_seconds(case, size, rate_mbit) if case.name in LARGE else None
            ours = medians.get(CONTENDERS[0])
            cells = [case.name, "" if allowed is None else f"{allowed * 1e3:.1f}"]
            cells += [f"{medians[one] * 1e3:.2f}" for one in shown]
            cells += [
                f"{ours / other:.2f}" if ours and other else ""
                for other in (allowed, medians.get(GLOO), medians.get(GLOO_RING))
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def store(folder: Path, lines: Sequence[str], content: Mapping[str, object]) -> None:
    """Write the section into the page of `make bench-net`, behind what is there, and the numbers beside it."""
    page = folder / "net.md"
    before = page.read_text().split(SECTION)[0].rstrip() if page.exists() else "# Collectives, side by side"
    page.write_text(f"{before}\n\n" + "\n".join(lines))
    (folder / "net_hosts.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
