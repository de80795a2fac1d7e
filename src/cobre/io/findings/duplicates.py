"""Check for duplicate ids and keys."""

from collections import Counter
from collections.abc import Hashable, Sequence

from cobre.io.findings.problems import Layer, Problems


def report_duplicates(file: str, word: str, keys: Sequence[Hashable], problems: Problems, field: str = "id") -> None:
    """Add one error for each key that occurs more than once; `word` names what the key identifies."""
    for key, count in Counter(keys).items():
        if count > 1:
            shown = ", ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
            message = (f"is used {count} times", "a different one for each")
            if field != "id":
                message = (f"appears {count} times", "keep one of them")
            problems.error(Layer.SCHEMA, file, f"{word} {shown}", field, *message)
