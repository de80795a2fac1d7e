"""Coverage of native code (gcov) and of the contract (coverage.py): a table, and the lines that no test reached.

The extension module is built for coverage in an environment of its own. Tests of the LP kernel, of `cobre.comm` and of
its faults run in it, and the quick grid of the conformance kit. A line that is listed is reached by none of them.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from instrumented import BUILD, ROOT, build_folder, compiler, environment

LP_TESTS = ("unit/solver", "unit/sddp/cuts", "unit/sddp/plugins", "unit/sddp/test_openings.py")
LP_TESTS += ("unit/sddp/test_lp_known_optima.py", "unit/sddp/test_lp_failure.py", "integration/test_calendars.py")
COMM_TESTS = ("unit/comm", "faults", "integration/test_shm_meeting.py", "integration/test_shm_strangers.py")
COMM_TESTS += ("integration/test_failure_table.py", "integration/test_launch_stop.py", "integration/test_tcp_hosts.py")
KIT = (("shm", "1,3"), ("shm", "3", "--wait", "condvar"), ("tcp", "3"))
CONTRACT = ROOT / "src" / "cobre" / "comm"
SETTINGS = """
[run]
source = {source}
data_file = {data}
parallel = true
patch = subprocess, fork, _exit
[report]
exclude_also =
    raise NotImplementedError
    @abstractmethod
    if TYPE_CHECKING:
"""


def main() -> int:
    """Run everything, then print; 1 when a test failed, whose lines count all the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-run", action="store_true", help="print what the last run found")
    parser.add_argument("--lines", action="store_true", help="list the lines that no test reached")
    arguments = parser.parse_args()
    python = str(BUILD / "venv-coverage" / "bin" / "python")
    failed = [] if arguments.no_run else run(python)
    print_native(lines=arguments.lines)
    report = [python, "-m", "coverage", "report", f"--rcfile={BUILD / 'coveragerc'}", "--skip-covered"]
    subprocess.run([*report, *(["--show-missing"] if arguments.lines else [])], cwd=ROOT, check=True)
    for command in failed:
        print(f"failed: {command}")
    return int(bool(failed))


def run(python: str) -> list[str]:
    """Run the tests and the kit with both kinds of coverage; gives what failed."""
    environment("coverage", "COBRE_COVERAGE=ON")
    # Every process of this environment is measured: ranks, and the processes that run tests side by side. The
    # environment only borrows the package that would see to that.
    query = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.check_output(query, text=True).strip())
    (own / "measured.pth").write_text("import coverage; coverage.process_startup()\n")
    settings = BUILD / "coveragerc"
    settings.write_text(SETTINGS.format(source=CONTRACT, data=BUILD / "coverage.data"))
    for old in [*build_folder("coverage").rglob("*.gcda"), *BUILD.glob("coverage.data*")]:
        old.unlink()
    covered = [python, "-m", "coverage", "run", f"--rcfile={settings}", "-m"]
    tests = [f"tests/{name}" for name in LP_TESTS + COMM_TESTS]
    commands = [["pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "2", "--dist", "loadfile", *tests]]
    for backend, ranks, *more in KIT:
        commands.append(["cobre.comm.testing", "--quick", "--backend", backend, "--ranks", ranks, *more])
    failed = [
        " ".join(words) for words in commands if subprocess.run([*covered, *words], cwd=ROOT, check=False).returncode
    ]
    subprocess.run([python, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"], cwd=ROOT, check=True)
    return failed


def print_native(*, lines: bool) -> None:
    """The table of native files, and the lines that no test reached."""
    reached = native_lines()
    total = missed = 0
    print(f"{'native file':34} {'lines':>6} {'missed':>6} {'covered':>8}")
    for file, counts in sorted(reached.items()):
        absent = sorted(line for line, count in counts.items() if count == 0)
        total, missed = total + len(counts), missed + len(absent)
        print(f"{file:34} {len(counts):6} {len(absent):6} {100 * (1 - len(absent) / len(counts)):7.1f}%")
        if lines and absent:
            print("    " + " ".join(map(str, absent)))
    print(f"{'all':34} {total:6} {missed:6} {100 * (1 - missed / total):7.1f}%")


def native_lines() -> dict[str, dict[int, int]]:
    """How often each line of each native file was run, in all processes together."""
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    gcov = os.environ.get("GCOV", compiler().replace("g++", "gcov"))
    notes = [str(path) for path in build_folder("coverage").rglob("native/*.gcno")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([gcov, "--json-format", *notes], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for path in Path(folder).glob("*.json.gz"):
            for file in json.loads(gzip.decompress(path.read_bytes()))["files"]:
                source = Path(file["file"])
                if source.parent.name != "native" or not (ROOT / "native" / source.name).exists():
                    continue  # a system header, or a file that has been renamed since the last build
                for line in file["lines"]:
                    counts[source.name][line["line_number"]] += line["count"]
    return counts


if __name__ == "__main__":
    sys.exit(main())
