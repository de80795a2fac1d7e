"""Build the native core with sanitizers and drive it hard: `make sanitize`.

The extension is loaded by a plain interpreter, so the sanitizer's runtime is preloaded. Leaks of the interpreter itself
are not ours to count.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = "address,undefined"
DRIVE = ["-m", "cobre.comm.testing", "--backend", "shm", "--ranks", "1,2,4", "--quick"]


def runtime(name: str) -> str:
    found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def build(scratch: Path) -> Path:
    options = [f"-DCOBRE_SANITIZE={SANITIZERS}", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"]
    cmake = Path(sys.executable).parent / "cmake"
    subprocess.run([cmake, "-S", ROOT, "-B", scratch / "build", "-G", "Ninja", *options], check=True)
    subprocess.run([cmake, "--build", scratch / "build"], check=True)
    package = scratch / "source"
    shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for library in (scratch / "build").glob("_native*.so"):
        shutil.copy(library, package / "cobre")
    return package


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        package = build(Path(scratch))
        environment = os.environ | {
            # By path and without `site`, or the hook of an editable installation would load the plain extension.
            "PYTHONPATH": f"{package}{os.pathsep}{sysconfig.get_path('purelib')}",
            "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }
        where = [sys.executable, "-S", "-c", "import cobre._native; print(cobre._native.__file__)"]
        loaded = subprocess.run(where, env=environment, capture_output=True, text=True, check=True).stdout
        if str(package) not in loaded:
            raise SystemExit(f"the sanitized extension was not loaded but {loaded}")
        for wait in ("futex", "condvar"):
            subprocess.run([sys.executable, "-S", *DRIVE, "--wait", wait], env=environment, check=True)
    print("no sanitizer complained")


if __name__ == "__main__":
    main()
