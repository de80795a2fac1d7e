"""The native code on aarch64, as far as a machine of another kind can try it.

Compiles every native file by Debian's cross compiler, then runs under qemu what needs no interpreter: the arithmetic,
whose digests must be those of this machine, and ranks as threads. qemu runs on the memory model of this machine, so the
weaker order of aarch64 is not tried here: `make sanitize` checks the memory orders instead.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import nanobind
import numpy as np
from instrumented import BUILD, PROGRAMS, ROOT

HERE = Path(__file__).resolve().parent
NATIVE = ROOT / "native"
CROSS = "aarch64-linux-gnu-g++"
QEMU = "qemu-aarch64-static"
FLAGS = (
    "-std=c++20",
    "-O3",
    "-Wall",
    "-Wextra",
    "-fno-fast-math",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-pthread",
)
ARITHMETIC = (
    "lp_dense_simplex",
    "lp_dense_pivot",
    "lp_kernels",
    "lp_sparse_basis",
    "lp_sparse_pricing",
    "lp_sparse_ratio_test",
)
ARITHMETIC += ("lp_sparse_update", "lp_sparse_values", "lp_factorisation_lu", "lp_factorisation_solve", "lp_nucleus")
ARITHMETIC += ("lp_cuts", "lp_cut_rhs", "lp_cut_screen", "lp_stage", "lp_substitution", "reduce")


def main() -> int:
    """Compile everything, run what can be run, and compare; return 0 if all agree."""
    missing = [tool for tool in (CROSS, QEMU) if shutil.which(tool) is None]
    if missing:
        print(f"missing {', '.join(missing)}: apt-get install g++-aarch64-linux-gnu qemu-user-static")
        return 1
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = sorted(NATIVE.glob("*.cpp"))
    for source in sources:
        compile_object(source)
    print(f"{len(sources)} files compile for aarch64")
    here = subprocess.check_output([program("g++", "bits", ARITHMETIC, "here")], text=True)
    there = subprocess.check_output([QEMU, program(CROSS, "bits", ARITHMETIC, "aarch64")], text=True)
    print(there, end="")
    print("the same bits as on this machine" if here == there else f"this machine gives other bits:\n{here}")
    threads = subprocess.run([QEMU, program(CROSS, "threads", PROGRAMS["threads"], "aarch64")], check=False).returncode
    return int(here != there or threads != 0)


def compile_object(source: Path) -> None:
    """Compile one file with this machine's headers of Python and NumPy: both are 64-bit Linux."""
    headers = [sysconfig.get_path("include"), np.get_include(), nanobind.include_dir()]
    systems = [word for folder in headers for word in ("-isystem", folder)]
    macros = ["-DNPY_NO_DEPRECATED_API=NPY_1_22_API_VERSION", "-fPIC", "-fvisibility=hidden"]
    output = ["-c", str(source), "-o", str(BUILD / "aarch64.o")]
    subprocess.run([CROSS, *FLAGS, *macros, *systems, f"-I{NATIVE}", *output], check=True)


def program(compiler: str, name: str, sources: tuple[str, ...], where: str) -> str:
    """Build a program of this folder; return its path."""
    output = BUILD / f"{name}-{where}"
    files = [str(HERE / f"{name}.cpp"), *(str(NATIVE / f"{source}.cpp") for source in sources)]
    static = ["-static"] if compiler == CROSS else []
    subprocess.run([compiler, *FLAGS, *static, f"-I{NATIVE}", *files, "-o", str(output)], check=True)
    return str(output)


if __name__ == "__main__":
    sys.exit(main())
