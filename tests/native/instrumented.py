"""Additional environments with a separate extension module: with a sanitizer, or for coverage."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "instrumented"
_COLLECTIVES = ("shm_barrier", "shm_failure", "shm_collectives", "shm_copy", "reduce", "process")
_JOINING = ("shm_liveness", "shm_rendezvous", "shm_rendezvous_socket", "shm_segment")
PROGRAMS = {
    "threads": (*_COLLECTIVES, "thread_pool"),
    "transport": (*_COLLECTIVES, *_JOINING, "shm_transport", "shm_regions"),
}
"""The programs of this folder that need no interpreter, and the native files of each."""


def environment(name: str, define: str) -> str:
    """Return the Python of an environment that has its own extension module and borrows everything else.

    name: of its folders. define: a CMake definition, e.g. `COBRE_SANITIZE=thread`.
    """
    folder = BUILD / f"venv-{name}"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        query = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        own = Path(subprocess.check_output(query, text=True).strip())
        (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    settings = [f"--config-settings=build-dir={build_folder(name)}", f"--config-settings=cmake.define.{define}"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # cmake and ninja
    subprocess.run([*install, *settings, "--editable", str(ROOT)], check=True, env={**os.environ, "PATH": path})
    return str(python)


def build_program(name: str, output: Path, *flags: str) -> None:
    """Compile one of PROGRAMS with these flags."""
    sources = [ROOT / "tests" / "native" / f"{name}.cpp", *(ROOT / "native" / f"{part}.cpp" for part in PROGRAMS[name])]
    usual = ["-std=c++20", "-O1", "-g", "-pthread", f"-I{ROOT / 'native'}"]
    output.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler(), *usual, *flags, *map(str, sources), "-o", str(output)], check=True)


def build_folder(name: str) -> Path:
    """Return the folder of the object files of an environment's module."""
    return BUILD / f"build-{name}"


def compiler() -> str:
    """Return the C++ compiler, whose runtimes and tools are used."""
    return os.environ.get("CXX", "g++")
