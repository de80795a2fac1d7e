"""Run native code under the address, undefined-behaviour and thread sanitizers of gcc.

For `address,undefined` and for `thread`: programs without an interpreter (`threads.cpp`, ranks as threads over one
mapping, and `transport.cpp`, the whole shared-memory transport), then the extension module in an environment of its
own, through the LP tests and the conformance kit. Prints a line for each, and what a sanitizer found; exits with 1 when
one found anything.
"""

import argparse
import os
import subprocess
import sys

from instrumented import BUILD, PROGRAMS, ROOT, build_program, compiler, environment

# Those that load no Arrow, whose thread pools are not built with the sanitizer.
LP_TESTS = ("solver", "sddp/problem/test_openings.py", "sddp/test_averaged_cuts.py", "comm/test_ordered_fold.py")
KIT = ("--backend", "shm", "--ranks", "1,3", "--quick")

# Suppressed findings:
# - the interpreter and NumPy keep memory until the end: leaks are not looked for;
# - ranks are forks of one process that has loaded the package;
# - a rank that is killed has no exit code of its own: findings go to files, which are read afterwards.
OPTIONS = {
    "address,undefined": {
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1:halt_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    },
    "thread": {"TSAN_OPTIONS": "die_after_fork=0:halt_on_error=0:second_deadlock_stack=1"},
}
RUNTIMES = {"address,undefined": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}


def main() -> int:
    """Run the requested checks; without arguments all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(OPTIONS), action="append")
    parser.add_argument(
        "--threads-only", action="store_true", help="only programs without an interpreter, which takes a minute"
    )
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    findings = []
    lp_tests = [f"tests/unit/{name}" for name in LP_TESTS]
    for sanitizer in arguments.only or OPTIONS:
        findings += run_programs(sanitizer)
        if not arguments.threads_only:
            python = environment(sanitizer.replace(",", "-"), f"COBRE_SANITIZE={sanitizer}")
            findings += run(sanitizer, "LP tests", [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *lp_tests])
            findings += run(sanitizer, "conformance kit", [python, "-m", "cobre.comm.testing", *KIT])
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def run_programs(sanitizer: str) -> list[str]:
    """Build the programs without an interpreter with a sanitizer, and run them."""
    findings = []
    for name in PROGRAMS:
        program = BUILD / f"{name}-{sanitizer.replace(',', '-')}"
        build_program(name, program, "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}")
        findings += run(sanitizer, f"{name}.cpp", [str(program)], preload=False)
    return findings


def run(sanitizer: str, what: str, command: list[str], *, preload: bool = True) -> list[str]:
    """Run a command under a sanitizer; return what it found, or that the command failed."""
    reports = BUILD / f"report-{sanitizer.replace(',', '-')}-{what.replace(' ', '-')}"
    for old in BUILD.glob(f"{reports.name}.*"):
        old.unlink()
    environ = {**os.environ, "PYTHONMALLOC": "malloc"}
    for name, value in OPTIONS[sanitizer].items():
        environ[name] = f"{value}:log_path={reports}"
    if preload:  # the interpreter is not built with the sanitizer: its runtime must be loaded first
        environ["LD_PRELOAD"] = " ".join(runtime(name) for name in RUNTIMES[sanitizer])
    # Thread sanitizers know where memory may lie only without a random layout of the address space.
    result = subprocess.run(["setarch", "-R", *command], env=environ, cwd=ROOT, check=False)
    findings = [f"{sanitizer}, {what}:\n{path.read_text()}" for path in sorted(BUILD.glob(f"{reports.name}.*"))]
    if result.returncode and not findings:
        findings = [f"{sanitizer}, {what}: exit code {result.returncode}"]
    print(f"{sanitizer:18} {what:17} {'clean' if not findings else f'{len(findings)} findings'}", flush=True)
    return findings


def runtime(name: str) -> str:
    """Return the path of a runtime of the compiler."""
    return subprocess.check_output([compiler(), f"-print-file-name={name}"], text=True).strip()


if __name__ == "__main__":
    sys.exit(main())
