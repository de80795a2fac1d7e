"""Coverage of native code (gcov) and of the contract (`line_recorder`): a table, and the lines that no test reached.

The extension module is built for coverage in an environment of its own. Tests of the LP kernel, of `cobre.comm` and of
its faults run in it, and the quick grid of the conformance kit; the environments of the two MPIs run the tests of the
mpi backend. A line that is listed is reached by none of them. Native code counts only in processes that are not killed.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import line_recorder
from coverage import CoverageData
from instrumented import BUILD, ROOT, build_folder, compiler, environment

LP_TESTS = (
    *(
        "unit/solver",
        "unit/sddp/test_cut_pool.py",
        "unit/sddp/test_averaged_cuts.py",
        "unit/sddp/plugins",
        "unit/sddp/problem/test_openings.py",
        "unit/sddp/lp",
    ),
    *("unit/sddp/test_team.py", "integration/oracles/test_inflow_lag_calendars.py"),
)
COMM_TESTS = ("unit/comm", "faults", "conformance", "mpi", "integration/comm")
KIT = ("--quick --backend local", "--quick --backend shm --ranks 1,3", "--quick --backend tcp --ranks 1,3")
KIT += ("--quick --backend shm --ranks 3 --variant condvar",)
FAULT_TABLE = "tests/faults/fault_table.py --backend tcp --ranks 2 --variant star"
MPI_KIT = "--quick --backend mpi --ranks 1,3"
MPIS = ("mpich", "openmpi")
CONTRACT = ROOT / "src" / "cobre" / "comm"
HITS = BUILD / "lines"
SETTINGS = """
[run]
data_file = {data}
[report]
exclude_also =
    raise NotImplementedError
    @abstractmethod
    if TYPE_CHECKING:
"""


def main() -> int:
    """Run everything, then print; return 1 if a test failed, whose lines count all the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-run", action="store_true", help="print what the last run found")
    parser.add_argument("--lines", action="store_true", help="list the lines that no test reached")
    arguments = parser.parse_args()
    failed = [] if arguments.no_run else run()
    print_native(lines=arguments.lines)
    print_contract(lines=arguments.lines)
    for command in failed:
        print(f"failed: {command}")
    return int(bool(failed))


def run() -> list[str]:
    """Run the tests and the kit with both kinds of coverage; return what failed."""
    python = environment("coverage", "COBRE_COVERAGE=ON")
    for old in build_folder("coverage").rglob("*.gcda"):
        old.unlink()
    line_recorder.prepare(HITS, sorted(CONTRACT.rglob("*.py")))
    of_mpis = [str(path) for wheel in MPIS if (path := ROOT / f".venv-{wheel}" / "bin" / "python").exists()]
    with record_lines([python, *of_mpis]):
        commands = [[python, "-m", *words] for words in (test_command(), *map(kit_command, KIT))]
        commands.append([python, *FAULT_TABLE.split()])
        commands += [[mpi, "-m", *kit_command(MPI_KIT)] for mpi in of_mpis]
        return [" ".join(words) for words in commands if subprocess.run(words, cwd=ROOT, check=False).returncode]


def test_command() -> list[str]:
    """Return the command of the tests, which run in parallel."""
    named = [f"tests/{name}" for name in LP_TESTS + COMM_TESTS]
    return ["pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "2", "--dist", "loadfile", *named]


def kit_command(options: str) -> list[str]:
    """Return the command of one run of the conformance kit."""
    return ["cobre.comm.testing", *options.split()]


@contextmanager
def record_lines(interpreters: list[str]) -> Iterator[None]:
    """Record what every process of these environments runs, until the end of the block."""
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folders = [Path(subprocess.check_output([python, "-c", query], text=True).strip()) for python in interpreters]
    try:
        for folder in folders:
            line_recorder.install(folder, HITS)
        yield
    finally:
        for folder in folders:
            line_recorder.remove(folder)


def print_contract(*, lines: bool) -> None:
    """Print the table of Python files: coverage.py knows which lines are statements."""
    settings, data = HITS / "coveragerc", HITS / "coverage.data"
    settings.write_text(SETTINGS.format(data=data))
    data.unlink(missing_ok=True)
    ran = CoverageData(str(data))
    ran.add_lines(line_recorder.lines_that_ran(HITS))
    ran.write()
    report = [sys.executable, "-m", "coverage", "report", f"--rcfile={settings}", "--skip-covered"]
    subprocess.run([*report, *(["--show-missing"] if lines else [])], cwd=ROOT, check=True)


def print_native(*, lines: bool) -> None:
    """Print the table of native files, and the lines that no test reached."""
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
    """Return how often each line of each native file was run, in all processes together."""
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
