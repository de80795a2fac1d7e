"""The tokens of an expression: numbers, names, references, signs."""

import math
import re
from enum import Enum

from cobre.errors import CobreError
from cobre.records import dataclass

_PATTERN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<reference>@[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<relation><=|>=|==)"
    r"|(?P<sign>[-+*/(),=])",
    re.ASCII,
)
_BLANKS = re.compile(r"\s*")
_ADVICE = {"<": "write `<=`", ">": "write `>=`", "@": "write a name right after `@`"}


class TokenKind(Enum):
    """Kinds of tokens, named as the groups of the pattern."""

    NUMBER = "number"
    REFERENCE = "reference"
    NAME = "name"
    RELATION = "relation"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and the position of its first character, counted from 1."""

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else f"`{self.text}`"


class ExpressionError(CobreError, ValueError):
    """An invalid expression: position, reason and remedy. others: what is wrong elsewhere in the same text."""

    others: tuple["ExpressionError", ...] = ()

    def __init__(self, position: int, message: str, remedy: str) -> None:
        super().__init__(f"at character {position}: {message} ({remedy})")
        self.position = position
        self.message = message
        self.remedy = remedy


def tokenise(text: str) -> list[Token]:
    """The tokens of a text, and an end token. Raises ExpressionError."""
    tokens = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        token = _token_at(text, position)
        tokens.append(token)
        position = _skip_blanks(text, position + len(token.text))
    return [*tokens, Token(TokenKind.END, "", len(text) + 1)]


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _token_at(text: str, position: int) -> Token:
    match = _PATTERN.match(text, position)
    if match is None or match.lastgroup is None:
        character = text[position]
        remedy = _ADVICE.get(character, "use numbers, names, @names, + - * / ( ) , and one of <= >= ==")
        raise ExpressionError(position + 1, f"`{character}` is not allowed here", remedy)
    token = Token(TokenKind(match.lastgroup), match.group(), position + 1)
    if token.kind is TokenKind.NUMBER and not math.isfinite(float(token.text)):
        raise ExpressionError(token.position, f"{token.text} is too large", "use a number below 1e308")
    return token
