"""The settings of launch files: ranks, case, output, resources. All of them are checked here."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from itertools import product
from string import Template
from typing import Self

from cobre.comm.config import DEFAULT_TCP_PORT, MAX_RANKS, MAX_TCP_PORT
from cobre.errors import CobreError
from cobre.limits import MAX_THREADS
from cobre.records import dataclass

DNS_LABEL = r"[a-z]([a-z0-9-]*[a-z0-9])?"
CLAIM_PART = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
CLAIM = rf"{CLAIM_PART}(\.{CLAIM_PART})*"
MAX_CLAIM = 253
MAX_NAME = 40  # Kubernetes adds the rank and more to it; a host name has at most 63 characters
QUANTITY = r"[1-9][0-9]*(Ki|Mi|Gi|Ti)?"
WALL_TIME = r"([0-9]+-)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
JOB_WORD = r"[A-Za-z0-9_.,-]+"
ARRAY = r"[0-9]+(-[0-9]+(:[0-9]+)?)?(,[0-9]+(-[0-9]+(:[0-9]+)?)?)*(%[0-9]+)?"
ARRAY_INDEX = "%a"  # as Slurm writes it in the names of files
CASE_MOUNT, OUTPUT_MOUNT = "/case", "/output"  # folders inside a container
_ENDS = "with a letter first and no '-' last"


class LaunchFileError(CobreError, ValueError):
    """A setting that would give a launch file that cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """Settings of all launch files.

    ranks: processes of the study. threads: of the LP solver on each rank. name: of the job, and of what it needs.
    case, output: folders; on Kubernetes the names of volume claims. port: of rank 0 (not used with MPI).
    run_options: further options of `cobre run`.
    """

    ranks: int
    case: str
    output: str
    threads: int = 1
    name: str = "cobre"
    port: int = DEFAULT_TCP_PORT
    run_options: tuple[str, ...] = ()

    def checked(self) -> Self:
        """Return these settings; raise LaunchFileError for a value that is out of range or malformed."""
        _check_range("--ranks", self.ranks, 1, MAX_RANKS)
        _check_range("--threads", self.threads, 1, MAX_THREADS)
        _check_range("--port", self.port, 1024, MAX_TCP_PORT)
        _check_pattern(
            "--name", self.name, DNS_LABEL, f"lower-case letters, digits and '-', {_ENDS}, at most {MAX_NAME}"
        )
        if len(self.name) > MAX_NAME:
            raise LaunchFileError(
                f"--name {self.name!r} has {len(self.name)} characters; at most {MAX_NAME} are allowed"
            )
        for option, text in (("--case", self.case), ("--output", self.output)):
            check_single_line(option, text)
        for text in self.run_options:
            check_single_line("an option of cobre run", text)
        return self

    def run_command(self, case: str, output: str) -> list[str]:
        """Return the words after `cobre`, with the paths as the rank sees them."""
        return ["run", case, "--output", output, "--auto-resume", "--threads", str(self.threads), *self.run_options]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings(LaunchSettings):
    """Ranks in containers. image: of the container. memory: limit of each rank, such as 2Gi."""

    image: str
    memory: str = "2Gi"

    def checked(self) -> Self:
        """Return these settings; raise LaunchFileError for a value that is out of range or malformed."""
        LaunchSettings.checked(self)
        _check_pattern("--image", self.image, r"[A-Za-z0-9][A-Za-z0-9._/:@-]*", "registry/name:tag")
        _check_pattern("--memory", self.memory, QUANTITY, "a number of bytes such as 512Mi or 2Gi")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings(LaunchSettings):
    """Ranks of a Slurm step.

    time_limit: D-HH:MM:SS or HH:MM:SS. nodes, partition, account: None leaves it to Slurm.
    array: indices of a job array, such as 1-8; `%a` in case, output and options is the index of each job.
    requeue: a job that the time limit stops goes back to the queue, until the study is complete.
    """

    time_limit: str = "01:00:00"
    nodes: int | None = None
    partition: str | None = None
    account: str | None = None
    array: str | None = None
    requeue: bool = False

    def checked(self) -> Self:
        """Return these settings; raise LaunchFileError for a value that is out of range or malformed."""
        LaunchSettings.checked(self)
        _check_pattern("--time", self.time_limit, WALL_TIME, "HH:MM:SS or D-HH:MM:SS")
        if self.nodes is not None:
            _check_range("--nodes", self.nodes, 1, self.ranks)
        for option, text in (("--partition", self.partition), ("--account", self.account)):
            if text is not None:
                check_job_word(option, text)
        if self.array is not None:
            _check_pattern("--array", self.array, ARRAY, "indices such as 0-7, 1,3,5 or 1-100%4")
            if ARRAY_INDEX not in self.output:
                raise LaunchFileError(
                    f"--output must have {ARRAY_INDEX} in it, the index of each job of the array; "
                    f"in {self.output!r} all of them would write into one folder"
                )
        return self


def check_job_word(option: str, text: str) -> str:
    """Return the name of a partition, an account or an MPI type; raise LaunchFileError if Slurm would not accept it."""
    _check_pattern(option, text, JOB_WORD, "a name without spaces")
    return text


def as_path(text: str) -> str:
    """Return the path, with ./ in front if it begins with "-": programs would take it for an option."""
    return f"./{text}" if text.startswith("-") else text


def check_claim(option: str, text: str) -> str:
    """Return the name of a Kubernetes volume claim; raise LaunchFileError for any other text."""
    _check_pattern(option, text, CLAIM, "the name of a volume claim, of lower-case letters, digits, '-' and '.'")
    if len(text) > MAX_CLAIM:
        raise LaunchFileError(f"{option} has {len(text)} characters; a volume claim has at most {MAX_CLAIM}")
    return text


def check_single_line(option: str, text: str) -> None:
    """Raise LaunchFileError for a text that is empty, or would end the line of the file that it is put into."""
    if not text or not text.isprintable():
        raise LaunchFileError(f"{option} must be a text on one line, got {text!r}")


def _check_range(option: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise LaunchFileError(f"{option} must be from {least} to {most}, got {number}")


def _check_pattern(option: str, text: str, pattern: str, right: str) -> None:
    if not re.fullmatch(pattern, text):
        raise LaunchFileError(f"{option} must be {right}; got {text!r}")


# Host lists as Slurm writes them: `node[01-04,7],gpu1`.

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
MAX_RANGE = 100_000


class HostListError(CobreError, ValueError):
    """Text that is not a Slurm host list such as `node[1-3]`."""


def hosts(text: str) -> Iterator[str]:
    """Return the names of a host list, in its order; raise HostListError for any other text.

    list(hosts("node[01-02],gpu1"))    # ["node01", "node02", "gpu1"]
    """
    entries = _ENTRY.findall(text)
    if not entries or ",".join(entries) != text:
        raise HostListError(f"{text!r} is not a host list such as node[01-04,7],gpu1")
    for entry in entries:
        parts = [_ranges(text, inside) if inside else (plain,) for inside, plain in _parts(text, entry)]
        yield from map("".join, product(*parts))


def _parts(text: str, entry: str) -> list[tuple[str, str]]:
    if "[]" in entry:
        raise HostListError(f"{text!r} has an empty range")
    return _PART.findall(entry)


def _ranges(text: str, inside: str) -> tuple[str, ...]:
    return tuple(number for piece in inside.split(",") for number in _range(text, piece))


def _range(text: str, piece: str) -> Iterator[str]:
    """Return the numbers of a range such as `7` or `01-04`, with as many digits as the first has."""
    match = _RANGE.fullmatch(piece)
    if match is None:
        raise HostListError(f"{text!r} has a range {piece!r}, expected one such as 7 or 01-04")
    first, last = match[1], match[2] or match[1]
    if not 0 <= int(last) - int(first) <= MAX_RANGE:
        raise HostListError(
            f"{text!r} has a range {piece!r}, expected one that ascends, over at most {MAX_RANGE} numbers"
        )
    return (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))


# Templates with placeholders `@name@`: shells and YAML both have other uses for braces and dollars.
#
# Texts are always quoted for the language of their template: without quotes, YAML reads `no` as false and `1e3` as a
# number.


class _Template(Template):
    """A text with placeholders `@name@`."""

    flags = re.VERBOSE  # names are in lower case
    pattern = r"@(?:(?P<named>[a-z_]+)@|(?P<escaped>(?!))|(?P<braced>(?!))|(?P<invalid>(?!)))"  # type: ignore[assignment]  # a text, compiled by Template


class Verbatim(str):
    """Text that is filled in without quotes: a piece of the template's own language, or of a comment."""

    __slots__ = ()


def fill_yaml(template: str, values: Mapping[str, object]) -> str:
    """Fill a YAML template; texts and lists of texts are written as JSON, which YAML reads."""
    return _fill(template, values, lambda value: json.dumps(value, ensure_ascii=False))


def fill_shell(template: str, values: Mapping[str, object]) -> str:
    """Fill a shell script; each text becomes one word of it."""
    return _fill(template, values, lambda value: shlex.quote(str(value)))


def escape_dollars(text: str) -> str:
    """Double every $ of the text: compose substitutes $NAME, and Kubernetes $(NAME), otherwise."""
    return text.replace("$", "$$")


def _fill(template: str, values: Mapping[str, object], quote: Callable[[object], str]) -> str:
    """Replace every placeholder; raises KeyError if placeholders and values do not correspond."""
    text = files("cobre.launchfiles").joinpath("templates", template).read_text(encoding="utf-8")
    parsed = _Template(text)
    if set(parsed.get_identifiers()) != set(values):
        raise KeyError(f"{template} has placeholders {sorted(parsed.get_identifiers())}, values are {sorted(values)}")
    words = {name: value if isinstance(value, Verbatim) else quote(value) for name, value in values.items()}
    return parsed.substitute(words)
