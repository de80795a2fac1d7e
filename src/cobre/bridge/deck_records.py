"""Files of decks: text in fixed columns, in Latin-1, under names whose case differs between publications."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ENCODING = "latin-1"  # of all files of a deck
COMMENT = "&"


def find_file(deck: Path, prefix: str) -> Path | None:
    """The file of a deck whose name begins so, whatever its case: of several, that of caso.dat's revision."""
    found = [path for path in sorted(deck.iterdir()) if path.name.lower().startswith(prefix)]
    if len(found) < 2:
        return found[0] if found else None
    index = next((path for path in deck.iterdir() if path.name.lower() == "caso.dat"), None)
    revision = next(iter(read_lines(index)), "").strip().lower() if index is not None else ""
    return next((path for path in found if path.name.lower() == f"{prefix}{revision}"), found[0])


def read_lines(path: Path) -> list[str]:
    """The lines of a deck's file."""
    return path.read_text(encoding=ENCODING).splitlines()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a deck's file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding=ENCODING)


def comment_out(path: Path, is_wrong: Callable[[str], bool]) -> None:
    """Turn the lines for which `is_wrong` holds into comments."""
    write_lines(path, [COMMENT + line if is_wrong(line) else line for line in read_lines(path)])


def integer(text: str) -> int | None:
    """A field of digits; None where it is blank or something else."""
    return int(text) if text.strip().isdigit() else None


def number(text: str) -> float:
    """A number; 0.0 for a blank field, as the format means it, and for one that is no number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def read_json(path: Path) -> Any:
    """A file of the converted case."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write a file of the converted case, in the bridges' form."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
