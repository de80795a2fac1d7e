"""Findings of validation: their codes, the data they carry, and the single place that formats them.

A check declares each kind of finding once, as a `Code` with its sentence, and adds findings with values:

    ABOVE_MAXIMUM = error_code("minimum-above-maximum", Layer.MEANING, "is {value:g}, above {maximum:g}")
    findings.add(ABOVE_MAXIMUM, "system/hydros.json", named("hydro", hydro), "min_mw", value=9.0, maximum=5.0)

Nothing is formatted before it is shown. Codes are stable: programs may compare them, and
docs/reference/findings.md, which is generated from them, lists them all.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field as dataclass_field
from datetime import date
from enum import Enum
from typing import Any, NamedTuple, Protocol

from cobre.errors import ValidationError
from cobre.records import dataclass
from cobre.text import counted

MAX_DETAILED = 100
"""Maximum number of errors listed individually in JSON output: a bad column produces one per row."""

MAX_SEPARATE = 3
"""Similar findings that have a line each; more of them share a line."""

MAX_SUBJECTS = 4
"""Subjects named in a line that similar findings share."""

MAX_IDS = 8
"""Ids named in a list of ids."""

_SELECTORS = re.compile(r"\[[^\]]*\]| ?\([^)]*\)")


class Layer(Enum):
    """The layer of validation that found a problem.

    Structure, schema and references between entities are checked in every file, also after errors in others; a rule of
    a later layer runs if the inputs that it needs have no error. Plausibility only gives warnings, and only for cases
    without errors.
    """

    STRUCTURE = "structure"
    SCHEMA = "schema"
    REFERENCES = "references"
    DIMENSIONS = "dimensions"
    MEANING = "meaning"
    PLAUSIBILITY = "plausibility"


class Severity(Enum):
    """Whether a finding keeps the study from running."""

    ERROR = "error"
    WARNING = "warning"


# Codes: every kind of finding, declared once next to its check.


class Code:
    """A kind of finding; compared by identity, and known by its name.

    message, expected, remedy: templates, filled in with the facts of a finding. expected: what a valid value would be.
    remedy: what to do, or what to know, as an instruction.
    """

    __slots__ = ("expected", "layer", "message", "name", "remedy", "severity")

    def __init__(
        self, name: str, layer: Layer, severity: Severity, message: str, expected: str = "", remedy: str = ""
    ) -> None:
        if name in CODES:
            raise ValueError(f"two codes are called {name}")
        self.name = name
        self.layer = layer
        self.severity = severity
        self.message = message
        self.expected = expected
        self.remedy = remedy
        CODES[name] = self

    def __repr__(self) -> str:
        return f"Code({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, so that a finding from another process has the same code."""
        return code_named, (self.name,)


CODES: dict[str, Code] = {}
"""All codes of the modules that are loaded, by name."""


def code_named(name: str) -> Code:
    """Return a code by its name. Raises KeyError for an unknown one."""
    if name not in CODES:
        load_all_codes()
    return CODES[name]


def load_all_codes() -> None:
    """Import every module that declares codes."""
    from importlib import import_module  # noqa: PLC0415

    for module in ("cobre.io.case", "cobre.io.saving.case_writer", "cobre.study.validation"):
        import_module(module)


def error_code(name: str, layer: Layer, message: str, *, expected: str = "", remedy: str = "") -> Code:
    """Declare a kind of finding that keeps the study from running."""
    return Code(name, layer, Severity.ERROR, message, expected, remedy)


def warning_code(name: str, layer: Layer, message: str, *, expected: str = "", remedy: str = "") -> Code:
    """Declare a kind of finding that does not keep the study from running."""
    return Code(name, layer, Severity.WARNING, message, expected, remedy)


# Subjects: the entity, row or place that a finding is about.


class Part(NamedTuple):
    """A part of a subject, such as `hydro 3 (ITAIPU)`."""

    kind: str
    id: int | str
    name: str = ""

    def __str__(self) -> str:
        text = f"{self.kind} {self.id}" if self.kind else str(self.id)
        return f"{text} ({self.name})" if self.name else text


Subject = tuple[Part, ...]
THE_FILE: Subject = ()
"""The subject of a finding about a file as a whole."""


class Named(Protocol):
    """Anything with an id and a name: entities, constraints, parameters."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


def named(kind: str, entity: Named) -> Subject:
    """Return an entity as a subject, such as `hydro 3 (ITAIPU)`."""
    return (Part(kind, entity.id, entity.name),)


def about(*parts: int | str) -> Subject:
    """Return a subject of kinds and ids in turn.

    >>> subject_text(about("hydro", 3, "stage", 4))
    'hydro 3, stage 4'
    """
    return tuple(Part(str(kind), id_) for kind, id_ in zip(parts[::2], parts[1::2], strict=True))


def label(text: str) -> Subject:
    """Return a subject without a kind, such as `system`; empty text: the file itself."""
    return (Part("", text),) if text else THE_FILE


def subject_text(subject: Subject) -> str:
    """Return a subject as messages name it."""
    return ", ".join(map(str, subject))


# Findings.

NO_OPTIONS: Mapping[str, str] = {}
"""No command line: overridden settings are called overrides."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning, as data: its code, where it is, and the facts that its message is made of.

    file: relative to the case directory. subject: what it is about, such as a hydro plant in a stage; empty for the
    file itself. field: such as `reservoir.max_storage_hm3`, empty for the subject itself.
    facts: by the names that the templates of the code use. `value` is the value that was found; `reason` a sentence
    of another module, and findings with different reasons are not similar.
    override: the setting that was changed by the command line or by `config_overrides`, if that made the finding.
    """

    code: Code
    file: str
    subject: Subject = THE_FILE
    field: str = ""
    facts: Mapping[str, Any] = dataclass_field(default_factory=dict)
    override: str = ""

    @property
    def layer(self) -> Layer:
        """The layer of validation that found it."""
        return self.code.layer

    @property
    def is_warning(self) -> bool:
        """Whether the study can run all the same."""
        return self.code.severity is Severity.WARNING

    @property
    def value(self) -> Any:
        """The value that was found; None if the finding is about no single value."""
        return self.facts.get("value")

    @property
    def entity(self) -> str:
        """The subject as text, such as `hydro 3 (ITAIPU)`; empty for the file itself."""
        return subject_text(self.subject)

    @property
    def message(self) -> str:
        """The problem, in a sentence that continues the location."""
        return self.code.message.format_map(self.facts)

    @property
    def expected(self) -> str:
        """A valid value; empty if the remedy contains it."""
        return self.code.expected.format_map(self.facts)

    @property
    def remedy(self) -> str:
        """The remedy; empty if the expected value is enough."""
        return self.code.remedy.format_map(self.facts)

    @property
    def advice(self) -> str:
        """The expected value and the remedy, as messages have them in brackets; empty if there is neither."""
        expected, remedy = self.expected, self.remedy
        return "; ".join(part for part in (f"expected {expected}" if expected else "", remedy) if part)

    def as_dict(self) -> dict[str, Any]:
        """Return machine-readable plain values, with the texts that `str` joins."""
        return {
            "code": self.code.name,
            "severity": self.code.severity.value,
            "layer": self.layer.value,
            "file": self.file,
            "entity": self.entity,
            "subject": [part._asdict() for part in self.subject],
            "field": self.field,
            "message": self.message,
            "value": _plain(self.value),
            "expected": self.expected,
            "remedy": self.remedy,
        } | ({"override": self.override} if self.override else {})

    def text(self, options: Mapping[str, str] = NO_OPTIONS) -> str:
        """Return location, message and advice. options: those of a command line, by the setting that they change.

        An overridden setting is named by its option, or as an override, and not by the file that it overrides.
        """
        parts = [self.file, self.entity, self.field]
        if self.override:
            path = ".".join(part for part in parts[1:] if part)
            is_other = not f"{self.override}.".startswith(f"{path}.") and bool(path)
            parts = [options.get(self.override, f"override {self.override}"), path if is_other else ""]
        location, advice = ", ".join(part for part in parts if part), self.advice
        return f"{location}: {self.message} ({advice})" if advice else f"{location}: {self.message}"

    def __str__(self) -> str:
        return self.text()


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset | IdList):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


class Findings:
    """Findings of a case, collected while it is read and checked."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._found = list(findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> list[Finding]:
        """Findings that keep a study from running."""
        return [finding for finding in self._found if not finding.is_warning]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that do not keep a study from running."""
        return [finding for finding in self._found if finding.is_warning]

    def add(self, code: Code, file: str, subject: Subject = THE_FILE, field: str = "", **facts: Any) -> None:
        """Add a finding. facts: by the names that the templates of the code use."""
        self._found.append(Finding(code, file, subject, field, facts))

    def extend(self, others: Iterable[Finding]) -> None:
        """Add findings that were made elsewhere."""
        self._found.extend(others)

    def revise(self, change: Callable[[Finding], Finding | None], start: int = 0) -> None:
        """Replace findings from number `start` on by what `change` returns; None: dropped."""
        changed = (change(finding) for finding in self._found[start:])
        self._found[start:] = [finding for finding in changed if finding is not None]

    def raise_errors(self, case: str) -> None:
        """Raise InvalidCaseError if there is at least one error."""
        if self.errors:
            raise InvalidCaseError(case, tuple(self._found))


class InvalidCaseError(ValidationError):
    """A case that cannot be run. The message lists all errors with file, entity, field and remedy.

    case: its path or name. findings: errors and warnings, one `Finding` each.
    """

    remedy = "correct the files; `cobre validate` lists all errors and warnings"

    def __init__(self, case: str, findings: tuple[Finding, ...]) -> None:
        self.case = case
        self.findings = findings
        super().__init__(self.text())

    def text(self, options: Mapping[str, str] = NO_OPTIONS) -> str:
        """Return the message; overridden settings are named by their options, see `Finding.text`."""
        errors = [finding.text(options) for finding in self.findings if not finding.is_warning]
        return "\n".join([f"{self.case}: {counted(len(errors), 'error')}", *(f"  {line}" for line in errors)])

    def details(self) -> dict[str, Any]:
        """Add `case`, `num_errors`, and `problems`: code, file, entity, field, message ... of the first 100."""
        errors = [finding for finding in self.findings if not finding.is_warning]
        listed = [finding.as_dict() for finding in errors[:MAX_DETAILED]]
        return super().details() | {"case": self.case, "num_errors": len(errors), "problems": listed}


# Lines of text: findings of one kind in one field of one file share a line if there are many.


def lines_of(findings: Iterable[Finding], options: Mapping[str, str] = NO_OPTIONS) -> list[str]:
    """Return findings as lines of text, in order of first appearance; similar ones share a line.

    options: as for `Finding.text`.
    """
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        kinds = tuple(part.kind for part in finding.subject)
        key = (finding.code, finding.file, kinds, _SELECTORS.sub("", finding.field), finding.facts.get("reason"))
        groups.setdefault(key, []).append(finding)
    return [line for group in groups.values() for line in _lines(group, options)]


def _lines(group: Sequence[Finding], options: Mapping[str, str]) -> list[str]:
    if len(group) <= MAX_SEPARATE:
        return [finding.text(options) for finding in group]
    return [f"{group[0].text(options)}; {len(group) - 1} more like it{_others(group)}"]


def _others(group: Sequence[Finding]) -> str:
    """Name the other subjects of a group, at most `MAX_SUBJECTS`."""
    others = list(dict.fromkeys(finding.entity for finding in group if finding.subject != group[0].subject))
    if not others:
        return ""
    unnamed = len(others) - MAX_SUBJECTS
    more = f" and {unnamed} {'other' if unnamed == 1 else 'others'}" if unnamed > 0 else ""
    joint = ":" if len(others) == len(group) - 1 else ", at"
    between = "; " if any(", " in entity for entity in others) else ", "
    return f"{joint} {between.join(others[:MAX_SUBJECTS])}{more}"


# Lists of ids in messages, formatted when they are shown.


class IdList:
    """Ids of a message: the first ones, and the count of many. As a value they are a sorted list.

    kind: `stage` gives `stage 3` or `stages 3, 4`; empty: ids only.
    """

    __slots__ = ("ids", "kind")

    def __init__(self, ids: Iterable[int], kind: str = "") -> None:
        self.ids = sorted(ids)
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdList) and (self.ids, self.kind) == (other.ids, other.kind)

    def __hash__(self) -> int:
        return hash((self.kind, *self.ids))

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.ids[:MAX_IDS])) or "none"
        more = f", ... ({len(self.ids)} in all)" if len(self.ids) > MAX_IDS else ""
        word = f"{self.kind}{'' if len(self.ids) == 1 else 's'} " if self.kind else ""
        return f"{word}{shown}{more}"


def several(kind: str, ids: Iterable[int]) -> Subject:
    """Return some entities of a kind as one subject, such as `stages 3, 4`."""
    members = list(ids)
    return (Part(kind if len(members) == 1 else f"{kind}s", str(IdList(members))),)


def stages(ids: Iterable[int]) -> IdList:
    """Return stages for a message, such as `stages 3, 4`."""
    return IdList(ids, "stage")
