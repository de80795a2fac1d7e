"""Problems of a case, collected layer by layer and reported together."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from cobre.errors import ValidationError
from cobre.records import dataclass
from cobre.wording import counted

# A remedy is an instruction or an explanation if it begins or ends like this; otherwise it is what was expected.
_SENTENCE = re.compile(
    r"(add|anticipated|change|check|choose|close|convert|correct|declared?|define|did|every|give|ids|is|its?|join|keep"
    r"|leave|move|multiply|names|no|now|remove|run|save|see|set|sort|they|use|write)\b"
    r"|.*(\?| needs it| needs no \w+| means the same)$"
)


MAX_DETAILED = 100

"""Errors that programs get one by one; a table with a wrong column has as many as rows."""


class Layer(Enum):
    """The layer of validation that found a problem.

    Structure, schema and references between entities are checked in every file, also after errors in others; each of
    the later layers runs only if the earlier ones found no error.
    Plausibility only gives warnings, and only for cases without errors.
    """

    STRUCTURE = "structure"
    SCHEMA = "schema"
    REFERENCES = "references"
    DIMENSIONS = "dimensions"
    MEANING = "meaning"
    PLAUSIBILITY = "plausibility"


@dataclass(frozen=True, slots=True)
class CaseProblem:
    """One problem: its location, a message, and a remedy or the expected value.

    file: relative to the case directory. entity: such as `hydro 3 (ITAIPU)` or `row 17`, empty for the file itself.
    field: such as `reservoir.max_storage_hm3`, empty for the entity itself.
    """

    layer: Layer
    file: str
    entity: str
    field: str
    message: str
    remedy: str = ""
    is_warning: bool = False

    def as_dict(self) -> dict[str, str]:
        """As plain values: layer, file, entity, field, message, remedy."""
        names = ("file", "entity", "field", "message", "remedy")
        return {"layer": self.layer.value} | {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        location = ", ".join(part for part in (self.file, self.entity, self.field) if part)
        text = f"{location}: {self.message}"
        return f"{text} ({self._remedy})" if self.remedy else text

    @property
    def _remedy(self) -> str:
        return self.remedy if _SENTENCE.match(self.remedy) else f"expected {self.remedy}"


class Problems:
    """A list of problems that grows while a case is read."""

    def __init__(self) -> None:
        self._problems: list[CaseProblem] = []

    def __iter__(self) -> Iterator[CaseProblem]:
        return iter(self._problems)

    def __len__(self) -> int:
        return len(self._problems)

    @property
    def errors(self) -> list[CaseProblem]:
        """Problems that keep a study from running."""
        return [problem for problem in self._problems if not problem.is_warning]

    @property
    def warnings(self) -> list[CaseProblem]:
        """Problems that do not keep a study from running."""
        return [problem for problem in self._problems if problem.is_warning]

    def error(self, layer: Layer, file: str, entity: str, field: str, message: str, remedy: str = "") -> None:
        """Add a problem that keeps the study from running."""
        self._problems.append(CaseProblem(layer, file, entity, field, message, remedy))

    def warn(self, layer: Layer, file: str, entity: str, field: str, message: str, remedy: str = "") -> None:
        """Add a problem that does not keep the study from running."""
        self._problems.append(CaseProblem(layer, file, entity, field, message, remedy, is_warning=True))

    def take(self, others: Iterable[CaseProblem]) -> None:
        """Add problems that were found elsewhere."""
        self._problems.extend(others)

    def revise(self, change: Callable[[CaseProblem], CaseProblem | None], start: int = 0) -> None:
        """Replace problems from number `start` on by what `change` returns; None: dropped."""
        changed = (change(problem) for problem in self._problems[start:])
        self._problems[start:] = [problem for problem in changed if problem is not None]

    def raise_errors(self, case: str) -> None:
        """Raise InvalidCaseError if there is at least one error."""
        if self.errors:
            raise InvalidCaseError(case, tuple(self._problems))


class InvalidCaseError(ValidationError):
    """A case that cannot be run. The message lists all errors with file, entity, field and remedy.

    case: its path or name. problems: errors and warnings, one `CaseProblem` each.
    """

    remedy = "correct the files; `cobre validate` lists all errors and warnings"

    def __init__(self, case: str, problems: tuple[CaseProblem, ...]) -> None:
        errors = [problem for problem in problems if not problem.is_warning]
        lines = [f"{case}: {counted(len(errors), 'error')}", *(f"  {problem}" for problem in errors)]
        super().__init__("\n".join(lines))
        self.case = case
        self.problems = problems

    def details(self) -> dict[str, Any]:
        """Also `case`, `num_errors`, and `problems`: file, entity, field, message and remedy of the first 100."""
        found = [problem.as_dict() for problem in self.problems if not problem.is_warning]
        return super().details() | {"case": self.case, "num_errors": len(found), "problems": found[:MAX_DETAILED]}


# Similar findings on many entities in one line: the first in full, a count, and the other entities.


MAX_SEPARATE = 3  # up to this many similar findings have a line each

MAX_NAMED = 4

NAME_IN_BRACKETS = re.compile(r"\([^()]*\)")

NUMBER = re.compile(r"(?<![A-Za-z])[-+]?\d+(\.\d+)?(e[-+]?\d+)?")

LIST_OF_NUMBERS = re.compile(r"#(, #)+")

PLURAL = re.compile(r"\b([a-z]+)s #")


def lines_of(problems: Iterable[CaseProblem]) -> list[str]:
    """Problems as lines of text, in order of first appearance; similar ones share a line."""
    groups: dict[tuple[str, ...], list[CaseProblem]] = {}
    for problem in problems:
        groups.setdefault(_kind(problem), []).append(problem)
    return [line for group in groups.values() for line in _lines(group)]


def _kind(problem: CaseProblem) -> tuple[str, ...]:
    """The key of similar findings: everything but names and numbers."""
    texts = (problem.entity, problem.field, problem.message, problem.remedy)
    return (problem.layer.value, problem.file, *(_without_numbers(text) for text in texts))


def _without_numbers(text: str) -> str:
    """The text with `#` for numbers and lists of numbers: equal for `season 3` and `seasons 3, 4`."""
    plain = LIST_OF_NUMBERS.sub("#", NUMBER.sub("#", NAME_IN_BRACKETS.sub("()", text)))
    return PLURAL.sub(r"\1 #", plain)


def _lines(group: Sequence[CaseProblem]) -> list[str]:
    if len(group) <= MAX_SEPARATE:
        return [str(problem) for problem in group]
    return [f"{group[0]}; {len(group) - 1} more like it{_where(group)}"]


def _where(group: Sequence[CaseProblem]) -> str:
    """The other entities of a group, at most `MAX_NAMED` by name."""
    others = list(dict.fromkeys(problem.entity for problem in group if problem.entity != group[0].entity))
    if not others:
        return ""
    unnamed = len(others) - MAX_NAMED
    more = f" and {unnamed} {'other' if unnamed == 1 else 'others'}" if unnamed > 0 else ""
    joint = ":" if len(others) == len(group) - 1 else ", at"
    between = "; " if any(", " in entity for entity in others) else ", "
    return f"{joint} {between.join(others[:MAX_NAMED])}{more}"


# Check for duplicate ids and keys.


def report_duplicates(file: str, word: str, keys: Sequence[Hashable], problems: Problems, field: str = "id") -> None:
    """Add one error for each key that occurs more than once; `word` names what the key identifies."""
    for key, count in Counter(keys).items():
        if count > 1:
            shown = ", ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
            message = (f"is used {count} times", "a different one for each")
            if field != "id":
                message = (f"appears {count} times", "keep one of them")
            problems.error(Layer.SCHEMA, file, f"{word} {shown}", field, *message)
