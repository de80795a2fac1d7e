"""The code blocks of a page, and a session that runs them in order."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block. file: the file to write it to instead of running it."""

    language: str
    file: str | None
    text: str
    line: int


def pages():
    """Return all hand-written pages."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page):
    text = page.read_text()
    return [Block(m[1], m[2], m[3], text[: m.start()].count("\n") + 2) for m in _BLOCK.finditer(text)]


def commands(block):
    """Return the lines after a prompt; a backslash joins the next line."""
    text = block.text.replace("\\\n", "")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def session(page):
    """Return a program that runs all blocks of a page in order, as its reader would."""
    lines = ["import pathlib, subprocess, sys", "reader = {'__name__': '__main__'}"]
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.file:
            lines.append(f"pathlib.Path({block.file!r}).write_text({block.text!r})")
        elif block.language == "python":
            padded = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
            lines.append(f"exec(compile({padded!r}, {str(page)!r}, 'exec'), reader)")
        elif block.language == "console":
            script = "\n".join(commands(block))
            lines.append(f"print({where!r}, flush=True)")
            lines.append(f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {script!r}], check=True)")
    return "\n".join(lines)


def has_snippets(page):
    return any(block.language in ("python", "console") for block in blocks(page))
