"""Cost until the first iteration begins: CPU seconds and peak memory, of us and of the peers, in turns.

    python benchmarks/bench_first_iteration.py CASE [CASE...] [--rounds 5]

Ours ends where training would begin, by `cobre run`, `cobre.train` and `cobre.run.run`, each without anything kept from
an earlier run; `kept` is a second run of an unchanged case, `validate` is `cobre.validate`. A peer runs the case with
training and simulation disabled: it reads, checks and prepares. Its environment is made by `make peer-environment`; one
that is missing is left out, and a case in a format that a peer does not read has no number there. The table shows
medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from sddp.peer_environment import PEERS

# User and system time of the process since it began, its interpreter included, and its largest memory.
MEASURE = """
import os, sys
def finish(*_, **__):
    times = os.times()
    with open("/proc/self/status") as status:
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(f"{times.user + times.system} {peak_kb / 1024}", flush=True)
    os._exit(0)
"""
# The function that iterates is replaced as its module is loaded: loading it earlier would change what is measured.
OURS = (
    MEASURE
    + """
import importlib.util
class AtTheFirstIteration:
    def find_spec(self, name, path, target=None):
        if name != "cobre.study.training.train":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            module.train = finish
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, AtTheFirstIteration())
how, case, output = sys.argv[1:4]
if how == "cobre run":
    from cobre.cli.main import main
    options = ["--output", output, "--overwrite", "--iterations", "1", "--threads", "1", "--plain", "--quiet"]
    sys.argv = ["cobre", "run", case, *options]
    main()
elif how == "validate":
    import cobre
    cobre.validate(case)
    finish()
elif how == "cobre.run.run":
    import cobre.run
    cobre.run.run(case, output, 1, overwrite=True)
elif how == "keep":
    from pathlib import Path
    from cobre.comm.backends.local import LocalCommunicator
    from cobre.study.preparation.on_ranks import prepare_on_ranks
    from cobre.study.requests import CaseRequest, with_iterations
    with LocalCommunicator() as comm:
        prepare_on_ranks(comm, CaseRequest(Path(case), with_iterations(None, 1), 1), lambda event: None).save_to_cache()
    finish()
else:
    import cobre
    cobre.train(case, iterations=1, threads=1)
"""
)
THEIRS = (
    MEASURE
    + """
import importlib
_, package, case, output = sys.argv
importlib.import_module(package).run.run(case, output, 1, {"training.enabled": False, "simulation.enabled": False})
finish()
"""
)
PACKAGES = {"cobre-python": "cobre", "novomodelo": "novomodelo"}
WAYS = ("cobre run", "cobre.train", "cobre.run.run", "kept", "validate")


def measured(python, code, words, cache):
    """CPU seconds and MB of a process; None where it failed."""
    with tempfile.TemporaryDirectory() as output:
        environment = os.environ | {"COBRE_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
        command = [python, "-c", code, *map(str, words), output]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = done.stdout.strip().splitlines()
    return tuple(map(float, lines[-1].split())) if done.returncode == 0 and lines else None


def programs(case, cache):
    """By name: how to measure it once."""
    ours = {way: lambda way=way: measured(sys.executable, OURS, [way, case], "off") for way in WAYS if way != "kept"}
    ours["kept"] = lambda: measured(sys.executable, OURS, ["cobre.train", case], cache)
    for name, peer in PEERS.items():
        python = peer.folder / "bin" / "python"
        if python.exists():
            ours[name] = lambda python=python, name=name: measured(python, THEIRS, [PACKAGES[name], case], "off")
    return ours


def rounds(case, count):
    """Medians of CPU seconds and MB by program; all take turns, after one round that fills caches."""
    with tempfile.TemporaryDirectory() as cache:
        measured(sys.executable, OURS, ["keep", case], cache)
        measure = programs(case, cache)
        found = {name: [] for name in measure}
        for number in range(count + 1):
            for name, once in measure.items():
                result = once()
                if number and result is not None:
                    found[name].append(result)
    return {name: [statistics.median(part) for part in zip(*of, strict=True)] for name, of in found.items() if of}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", type=lambda text: Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    found = {case.name: rounds(case, options.rounds) for case in options.cases}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'case':<24}{'by':<16}{'CPU s':>8}{'MB':>8}")
    for case, of_case in found.items():
        for name, (cpu_s, peak_mb) in of_case.items():
            print(f"{case:<24}{name:<16}{cpu_s:>8.2f}{peak_mb:>8.0f}")


if __name__ == "__main__":
    main()
