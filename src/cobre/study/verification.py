"""`cobre verify`: the shipped examples must give the bits recorded for this version of the arithmetic.

The package has the record (`known_digests.json`): digests and bounds of some iterations of every example, by version of
the arithmetic and of the LP library. A change that alters bits raises `ARITHMETIC` and records new digests (`cobre
verify --record`) in the same commit; the changelog says why.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from cobre.core.file_names import CONVERGENCE, TRAINING
from cobre.errors import CobreError
from cobre.io.case_folder.new_cases import templates
from cobre.io.output import read_results
from cobre.io.storage.stored_json import write_json
from cobre.records import dataclass

ARITHMETIC = 4
"""Raised by every change that alters the bits of a result on purpose."""
RECORD = Path(__file__).with_name("known_digests.json")
ITERATIONS = {"two_reservoirs": 10, "four_regions": 4, "large": 3, "large_sparse": 3}
# The examples are small enough for the dense inverse; one is run again with the method of large stages.
VARIANTS = {"large_sparse": ("large", {"COBRE_MAX_DENSE_ROWS": "0"})}
LIMIT_S = 900.0
# Kernels of Cobre, NumPy and the C library as on the plainest processor.
NARROW = {
    "COBRE_WIDE_INSTRUCTIONS": "0",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512_SKX",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4,-AVX",
    "PYTHONWARNINGS": "ignore",  # of features that this NumPy, or this processor, does not have
}


class NotVerifiedError(CobreError):
    """An example that could not be run, or a missing record."""

    remedy = "install the examples and the libraries that the message names, and verify again"


@dataclass(frozen=True, slots=True)
class Bits:
    """Results of an example: two digests, and the bounds of every iteration as hexadecimal floats."""

    training: str
    simulation: str
    lower_bounds: tuple[str, ...]
    upper_bounds: tuple[str, ...]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Bits":
        """Create from an entry of known_digests.json."""
        return cls(
            stored["training"], stored["simulation"], tuple(stored["lower_bounds"]), tuple(stored["upper_bounds"])
        )

    def difference(self, recorded: "Bits") -> str:
        """Describe the first difference; empty if there is none."""
        for name in ("lower_bounds", "upper_bounds"):
            pairs = zip(getattr(self, name), getattr(recorded, name), strict=False)
            for iteration, (bound, recorded_bound) in enumerate(pairs, 1):
                if bound != recorded_bound:
                    label = name.removesuffix("s").replace("_", " ")
                    return f"{label} of iteration {iteration} is {_shown(bound)}, recorded {_shown(recorded_bound)}"
        if self.training != recorded.training:
            return (
                f"all bounds are equal, but cuts differ: digest {self.training[:16]}, recorded {recorded.training[:16]}"
            )
        if self.simulation != recorded.simulation:
            return f"the simulation differs: digest {self.simulation[:16]}, recorded {recorded.simulation[:16]}"
        return ""


@dataclass(frozen=True, slots=True)
class ExampleCheck:
    """An example, run with wide or narrow instructions. difference: from the record; empty if there is none."""

    example: str
    instructions: str
    bits: Bits
    difference: str

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cobre verify --json` prints."""
        return {
            "example": self.example,
            "instructions": self.instructions,
            "training": self.bits.training,
            "simulation": self.bits.simulation,
            "difference": self.difference or None,
        }


def lp_library() -> str:
    """Return the name and version of the LP library, which bits depend on."""
    return f"highspy {metadata.version('highspy')}"


def verify(examples: tuple[str, ...] = tuple(ITERATIONS)) -> Iterator[ExampleCheck]:
    """Run examples with wide and with narrow instructions, and compare with the record. Raises NotVerifiedError."""
    recorded = known_bits()
    for example in examples:
        for instructions, environ in (("wide", {}), ("narrow", NARROW)):
            bits = run_example(example, environ)
            yield ExampleCheck(example, instructions, bits, bits.difference(recorded[example]))


def known_bits() -> dict[str, Bits]:
    """Return the record for this arithmetic and this LP library; raise NotVerifiedError if there is none."""
    by_library = _record().get(str(ARITHMETIC), {})
    stored = by_library.get(lp_library())
    if stored is None:
        recorded = ", ".join(by_library) or "nothing"
        raise NotVerifiedError(
            f"no digests are recorded for arithmetic {ARITHMETIC} with {lp_library()} (recorded: {recorded}): install "
            "a recorded version, or record this one with `cobre verify --record` after checking its results"
        )
    return {name: Bits.of(content) for name, content in stored.items()}


def record() -> dict[str, Bits]:
    """Run all examples and record their bits if wide and narrow instructions agree; other records stay."""
    results: dict[str, Bits] = {}
    for example in ITERATIONS:
        wide, narrow = run_example(example, {}), run_example(example, NARROW)
        if difference := narrow.difference(wide):
            raise NotVerifiedError(f"{example}: without wide instructions the {difference}: nothing was recorded")
        results[example] = wide
    content = _record()
    stored = {name: _as_dict(bits) for name, bits in results.items()}
    content.setdefault(str(ARITHMETIC), {})[lp_library()] = stored
    write_json(RECORD, content, sort_keys=True)
    return results


def run_example(example: str, environ: Mapping[str, str]) -> Bits:
    """Run an example in its own process: libraries choose their instructions when they are loaded."""
    name, variant = VARIANTS.get(example, (example, {}))
    case = next((template.folder for template in templates() if template.name == name), None)
    if case is None:
        raise NotVerifiedError(f"the example {example} is not installed")
    with tempfile.TemporaryDirectory(prefix="cobre-verify-") as scratch:
        output = Path(scratch) / "run"
        flags = ["--output", output, "--iterations", ITERATIONS[example], "--backend", "local", "--threads", 1]
        command = [sys.executable, "-P", "-m", "cobre.cli", "run", case, *flags, "--quiet", "--json", "--no-report"]
        done = subprocess.run(
            [*map(str, command)],
            env=_environment({**variant, **environ}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise NotVerifiedError(f"{example} did not run: {done.stderr.strip()[-500:]}")
        return _bits(json.loads(done.stdout), output)


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without the variables that would make a child join a run as a rank."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("COBRE_")}
    return {**variables, **changes}


def _bits(summary: Mapping[str, Any], output: Path) -> Bits:
    table = read_results(output / TRAINING, [CONVERGENCE])[CONVERGENCE]
    lower, upper = (tuple(map(_hex, table[name].to_pylist())) for name in ("lower_bound", "upper_bound"))
    return Bits(str(summary["digest"]), str(summary["simulation_digest"] or ""), lower, upper)


def _hex(value: float | None) -> str:
    return "none" if value is None else float(value).hex()


def _shown(value: str) -> str:
    return value if value == "none" else f"{float.fromhex(value):.17g} ({value})"


def _record() -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content


def _as_dict(bits: Bits) -> dict[str, Any]:
    return {
        "training": bits.training,
        "simulation": bits.simulation,
        "lower_bounds": list(bits.lower_bounds),
        "upper_bounds": list(bits.upper_bounds),
    }
