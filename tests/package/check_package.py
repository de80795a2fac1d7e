"""Install the artifacts of a release into empty environments, and use them: `make package`.

Wheel and sdist are built here; the wheels that `make wheels` left in dist/ are tried by the interpreters that they are
for, and in roots of other distributions (`distributions.py`), one of them for aarch64. Each environment runs a few
ranks, the conformance kit, and a study whose digest must be that of this clone. One more has `cobre.comm` alone: the
wheel without its dependencies, with only numpy and cloudpickle. And one has the profile for clusters, `pycobre[hpc]`.

    python tests/package/check_package.py [--only clone|wheels|distributions]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from build_wheels import find_interpreter
from distributions import DISTRIBUTIONS, UnavailableError, use_wheel

ROOT = Path(__file__).resolve().parents[2]
COMM_ALONE = ("numpy", "cloudpickle")

PROGRAM = """
import numpy as np
from cobre.comm import ReduceOp, available_backends, launch

def total(comm):
    result = np.empty(1)
    comm.allreduce(np.array([comm.rank + 1.0]), result, ReduceOp.SUM)
    return float(result[0])

assert launch.run(total, size=2) == [3.0, 3.0]
print("works with", *available_backends())
"""
DEMO = ("init", "demo", "--template", "two_reservoirs")
STUDY = ("run", "demo", "--iterations", "5", "--quiet", "--json", "--workers", "2")


def build(folder: Path) -> list[Path]:
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    return sorted(folder.iterdir())


def built_wheels() -> list[tuple[Path, Path]]:
    """Return the wheels in dist/ for this machine, each with a matching interpreter."""
    wheels = []
    for wheel in sorted((ROOT / "dist").glob("*manylinux*_x86_64.whl")):
        version = re.search(r"-cp3(\d+)-", wheel.name)
        python = find_interpreter(f"3.{version[1]}") if version else None
        if python is not None:
            wheels.append((wheel, python))
    return wheels


def environment(folder: Path, python: Path, *requirements: str) -> Path:
    subprocess.run([python, "-m", "venv", folder], check=True)
    interpreter = folder / "bin" / "python"
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", *requirements], check=True)
    return interpreter


def use_comm(python: Path, folder: Path) -> None:
    script = folder / "program.py"
    script.write_text(PROGRAM)
    # Isolated, from another folder, so that nothing is imported from the source tree.
    subprocess.run([python, "-I", str(script)], check=True, cwd=folder)
    subprocess.run(
        [python, "-m", "cobre.comm.testing", "--backend", "shm", "--ranks", "2", "--quick"], check=True, cwd=folder
    )


def digest_of_study(python: Path, folder: Path) -> str:
    """Train and simulate the demo as a user would; return the digest of its policy."""
    cobre = python.parent / "cobre"
    subprocess.run([cobre, *DEMO], check=True, cwd=folder, capture_output=True)
    done = subprocess.run([cobre, *STUDY], check=True, cwd=folder, capture_output=True, text=True)
    return str(json.loads(done.stdout.splitlines()[-1])["digest"])


def check_digest(name: str, digest: str, expected: str) -> None:
    print(f"study {digest[:16]}, {'as here' if digest == expected else 'OTHER BITS THAN HERE'}", flush=True)
    if digest != expected:
        raise SystemExit(f"{name} gives other bits than this clone")


def check_environment(artifact: Path, python: Path, folder: Path, expected: str) -> None:
    """Check an artifact in an empty virtual environment of one interpreter."""
    print(f"== {artifact.name}, {artifact.stat().st_size / 1024:.0f} KiB, {python}", flush=True)
    interpreter = environment(folder, python, str(artifact))
    use_comm(interpreter, folder)
    check_digest(artifact.name, digest_of_study(interpreter, folder), expected)


def check_clone(place: Path, expected: str) -> None:
    """Check the artifacts built from this clone: with and without dependencies, and with the extra for clusters."""
    artifacts = build(place / "dist")
    kinds = {path.suffix for path in artifacts}
    if kinds != {".whl", ".gz"}:
        raise SystemExit(f"expected a wheel and an sdist, got {artifacts}")
    for number, artifact in enumerate(artifacts):
        check_environment(artifact, Path(sys.executable), place / f"clone-{number}", expected)
    [wheel] = [artifact for artifact in artifacts if artifact.suffix == ".whl"]
    print("== cobre.comm alone", flush=True)
    interpreter = environment(place / "comm", Path(sys.executable), *COMM_ALONE)
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True)
    use_comm(interpreter, place / "comm")
    print("== pycobre[hpc]", flush=True)
    interpreter = environment(place / "hpc", Path(sys.executable), f"{wheel}[hpc]")
    subprocess.run([interpreter, "-c", "import mpi4py; print('mpi4py', mpi4py.__version__)"], check=True, cwd=place)


def check_wheels(place: Path, expected: str) -> None:
    """Check the wheels in dist/ for this machine."""
    wheels = built_wheels()
    if not wheels:
        print("no wheel for this machine in dist/: make wheels", flush=True)
    for number, (wheel, python) in enumerate(wheels):
        check_environment(wheel, python, place / f"wheel-{number}", expected)


def check_distributions(_: Path, expected: str) -> None:
    """Check the wheels in dist/ inside other distributions."""
    for distribution in DISTRIBUTIONS:
        tag = f"cp{distribution.python.replace('.', '')}"
        wheels = sorted((ROOT / "dist").glob(f"*-{tag}-{tag}-manylinux*_{distribution.architecture}.whl"))
        if not wheels:
            print(f"== {distribution.name}: not tried, dist/ has no wheel for its Python {distribution.python}")
            continue
        print(f"== {wheels[-1].name} in {distribution.name}, {distribution.architecture}", flush=True)
        try:
            printed = use_wheel(wheels[-1], distribution, PROGRAM, (DEMO, STUDY))
        except UnavailableError as error:
            print(f"not tried: {error}", flush=True)
            continue
        digest = str(json.loads(printed.splitlines()[-1])["digest"])
        check_digest(f"{wheels[-1].name} in {distribution.name}", digest, expected)


PARTS = {"clone": check_clone, "wheels": check_wheels, "distributions": check_distributions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="default: all of them")
    parts = parser.parse_args().only or PARTS
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        here = place / "here"
        here.mkdir()
        expected = digest_of_study(Path(sys.executable), here)
        for part in parts:
            PARTS[part](place, expected)


if __name__ == "__main__":
    main()
