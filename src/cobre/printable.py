"""Escaping of untrusted text for terminals; all output of such text uses it."""

import unicodedata

# Controls, invisible and bidirectional marks, halves of characters, private use: what may move a cursor, set a title,
# or make a line read as another one.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_ESCAPES = {0x7F: "\\x7f", **{code: f"\\x{code:02x}" for code in range(32) if code != 0x0A}}


def printable(text: str, *, max_length: int | None = None, lines: bool = True) -> str:
    """The text with everything escaped that a terminal would act on.

    max_length: characters beyond it are cut off. lines: whether line breaks stay.

    >>> printable("Itaipu\\x1b]0;title\\x07")
    'Itaipu\\\\x1b]0;title\\\\x07'
    """
    if max_length is not None and len(text) > max_length:
        text = text[:max_length] + "..."
    if text.isascii():
        text = text.translate(_ESCAPES)
    else:
        text = "".join(character if _is_safe(character) else _escaped(character) for character in text)
    return text if lines else text.replace("\n", "\\n")


def _is_safe(character: str) -> bool:
    return character == "\n" or unicodedata.category(character) not in _UNSAFE


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
