"""Build wheel and sdist, install each into an empty environment, and use it there: `make package`."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

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


def build(folder: Path) -> list[Path]:
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    return sorted(folder.iterdir())


def check(artifact: Path, folder: Path) -> None:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(artifact)], check=True)
    script = folder / "program.py"
    script.write_text(PROGRAM)
    # Isolated, from another folder: nothing of the source tree may help.
    subprocess.run([python, "-I", str(script)], check=True, cwd=folder)
    subprocess.run(
        [python, "-m", "cobre.comm.testing", "--backend", "shm", "--ranks", "2", "--quick"], check=True, cwd=folder
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        artifacts = build(Path(scratch) / "dist")
        kinds = {path.suffix for path in artifacts}
        if kinds != {".whl", ".gz"}:
            raise SystemExit(f"expected a wheel and an sdist, got {artifacts}")
        for number, artifact in enumerate(artifacts):
            print(f"== {artifact.name}, {artifact.stat().st_size / 1024:.0f} KiB")
            check(artifact, Path(scratch) / f"empty-{number}")


if __name__ == "__main__":
    main()
