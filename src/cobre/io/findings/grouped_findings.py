"""Similar findings on many entities in one line: the first in full, a count, and the other entities."""

import re
from collections.abc import Iterable, Sequence

from cobre.io.findings.problems import CaseProblem

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
