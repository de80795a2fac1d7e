"""Every environment variable, from the configs that read them."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from docstrings import first_line, meanings

from cobre.comm.config import BACKEND_VARIABLE, MpiConfig, ShmConfig, TcpConfig
from cobre.comm.detection import LAUNCHERS
from cobre.comm.types import BackendKind
from cobre.solver.program import MAX_DENSE_ROWS

CONFIGS = (ShmConfig, TcpConfig, MpiConfig)
# Candidate values: each variable accepts at least one of them.
PROBES = ("1", "0", "2.5", "2", "condvar", "name", "probe")
TITLES = {
    ShmConfig: "Shared memory",
    TcpConfig: "TCP",
    MpiConfig: "MPI",
}
INTRODUCTION = """\
# Environment variables

A rank that another launcher started finds its world here. `cobre run` and `create_communicator()` read these
variables; the launchers set them. Durations are seconds. A value that makes no sense is an error that names the
variable, unless its row says otherwise.

## For all backends

| variable | default | meaning |
|---|---|---|
| `{backend}` | `auto` | Which backend: {kinds}. {auto} |
| `COBRE_CACHE_DIR` | `$XDG_CACHE_HOME/cobre` or `~/.cache/cobre` | {folder} |
| `COBRE_CACHE_MIN_SECS` | `0.25` | CPU seconds that preparing a case must take to be kept. |
| `COBRE_COMM_TRACE` | none | A folder; every rank writes its calls there ([how-to]({hangs})). |
| `COBRE_MAX_DENSE_ROWS` | `{dense}` | {rows} |
| `COBRE_WIDE_INSTRUCTIONS` | `1` | {wide} |
| `NO_COLOR` | none | Any value: no colours on the terminal. |
"""
AUTO = (
    "auto: mpi if an MPI launcher started this process and mpi4py is installed, else tcp or shm if a variable "
    "by which their ranks join is set, else local: one process, where `cobre run` uses a thread per core, or starts as "
    "many workers as it was given. It does not fall back to local if a launcher started several processes that "
    "could not find each other: that is an error. Also the name of a backend that another distribution registers."
)
ROWS = (
    "Stages with more rows are solved with a sparse factorisation of the basis, others with a dense inverse. Bits may "
    "change. At which stages a forward path starts from its basis of the stage before depends on the default alone."
)
CACHE = "Where prepared cases are kept for later runs; `off`: nowhere."
WIDE = "0: plain instructions of the processor only; the same bits, more slowly. Any other value is 1."
HANGS = "../how-to/find-out-why-a-run-hangs.md"
OURS = """
## Between our own processes

The launcher and the conformance kit use `COBRE_LAUNCH_MESSAGES` and `COBRE_TESTING_MARK` for themselves. Do not set
them.
"""
LAUNCHER_VARIABLES = """
## Variables of launchers

`auto` recognises a launcher by its variables for rank and size, which must both be there. They are read, and never set:
{pairs}. `SLURM_PROCID` with `SLURM_STEP_NUM_TASKS` is a task of `srun`, which proves no MPI. `MPI4PY_LIBMPI` and
`MPI4PY_MPIABI` say which MPI mpi4py loads. Workers that Cobre starts get `OMP_NUM_THREADS`, `OPENBLAS_NUM_THREADS` and
`MKL_NUM_THREADS` as 1, unless you set them. `import cobre` sets `OPENBLAS_THREAD_TIMEOUT` to 18, unless you set it:
idle threads of OpenBLAS, which NumPy loads later, then sleep after 0.1 ms instead of 20 ms. The
command `cobre` and its workers set `ARROW_DEFAULT_MEMORY_POOL` to `system`, unless you set it.
"""
HEADER = "\n## {title}\n\n{text}\n\n| variable | takes | default | meaning |\n|---|---|---|---|\n"
OBVIOUS = {
    "rank": "This process's number, from 0.",
    "size": "The number of ranks.",
    "port": "The coordinator's port, unless the coordinator's address has one.",
}
TLS = ("COBRE_TCP_TLS_CERT", "COBRE_TCP_TLS_KEY", "COBRE_TCP_TLS_CA")  # accepted only together
WORDS = {
    "str": "a string",
    "int": "an integer",
    "int | None": "an integer",
    "bool": "1 or 0",
    "float": "seconds",
    "float | None": "seconds",
}


class _Recorder(dict[str, str]):
    """Mapping that records requested variables."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.asked: dict[str, None] = {}

    def get(self, key: str, default: Any = None) -> Any:
        self.asked[key] = None
        return super().get(key, default)


def environment_page() -> str:
    """Return the page as Markdown."""
    kinds = ", ".join(f"`{kind.value}`" for kind in BackendKind)
    words = {"auto": AUTO, "hangs": HANGS, "dense": MAX_DENSE_ROWS, "rows": ROWS, "folder": CACHE, "wide": WIDE}
    sections = [INTRODUCTION.format(backend=BACKEND_VARIABLE, kinds=kinds, **words)]
    pairs = "; ".join(f"`{one.rank_variable}` with `{one.size_variable}`" for one in LAUNCHERS)
    return "".join([*sections, *map(_section, CONFIGS), LAUNCHER_VARIABLES.format(pairs=pairs), OURS])


def variables_of(config: type[Any]) -> dict[str, Field[Any]]:
    """Return each variable that the config reads, with the field that it sets, found by trying."""
    base = _Recorder(_required(config))
    plain = config.from_env(base)
    return {variable: _field_of(config, variable, plain, dict(base)) for variable in base.asked}


def _required(config: type[Any]) -> dict[str, str]:
    """Find the minimal set of variables that makes a world, by adding each one that an error names."""
    values: dict[str, str] = {}
    for _ in range(10):
        try:
            config.from_env(values)
        except Exception as error:  # noqa: BLE001 - it says which variable it misses
            values[error.variable] = "2" if error.variable.endswith("SIZE") else "0"  # type: ignore[attr-defined]
        else:
            return values
    raise AssertionError(f"{config.__name__} asks for more and more")


# Variables that are only good together with others.
_COMPANY = {**dict.fromkeys(TLS, TLS), "COBRE_TCP_RANK": ("COBRE_TCP_COORDINATOR",)}


def _field_of(config: type[Any], variable: str, plain: Any, base: dict[str, str]) -> Field[Any]:
    company = dict.fromkeys(_COMPANY.get(variable, ()), "other")
    for probe in PROBES:
        try:
            changed = config.from_env({**base, **company, variable: probe})
        except Exception:  # noqa: BLE001, S112 - not what this variable takes
            continue
        for one in fields(config):
            if getattr(changed, one.name) != getattr(plain, one.name) and getattr(changed, one.name) != "other":
                return one
    raise AssertionError(f"no field of {config.__name__} follows {variable}")


def _section(config: type[Any]) -> str:
    rows = "".join(_rows(config, meanings(config)))
    return HEADER.format(title=TITLES[config], text=first_line(config)) + rows


def _rows(config: type[Any], meaning_of: Mapping[str, str]) -> Iterator[str]:
    for variable, one in variables_of(config).items():
        takes = WORDS[str(getattr(one.type, "__name__", one.type))]
        if one.type is float and not one.name.endswith("_s"):
            takes = "a number"
        yield f"| `{variable}` | {takes} | {_default(one)} | {meaning_of.get(one.name) or OBVIOUS[one.name]} |\n"


def _default(one: Field[Any]) -> str:
    if one.name == "coordinator":
        return "required, but on rank 0"
    if one.default is MISSING:
        return "required"
    return "none" if one.default in (None, "") else f"`{int(one.default) if one.type is bool else one.default}`"
