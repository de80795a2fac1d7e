"""Identifiers that docstrings and comments name in backticks exist."""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "cobre"
# A name of our own style: at least two words. Single words may be values, options or names of other programs.
IN_BACKTICKS = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")
# Names that code puts together from parts, and one of another program.
COMPOSED = {"inflow_lag2", "backward_pivots", "forward_us_per_pivot", "hydro_name", "bus_name", "random_range"}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def named_and_known() -> tuple[dict[str, str], set[str]]:
    """Return identifiers named in prose, each with the file that names it, and all identifiers outside of prose."""
    named: dict[str, str] = {}
    known: set[str] = set()
    for path in sorted(SOURCES.rglob("*.py")):
        known |= {path.stem, *path.parent.parts}
        previous = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            is_docstring = token.type == tokenize.STRING and previous in (
                tokenize.NEWLINE,
                tokenize.NL,
                tokenize.INDENT,
                tokenize.DEDENT,
            )
            if token.type == tokenize.COMMENT or is_docstring:
                found = IN_BACKTICKS.findall(token.string)
                named.update((name, str(path.relative_to(ROOT))) for name in found)
            else:
                known.update(WORD.findall(token.string))
            previous = token.type
    for path in (ROOT / "native").glob("*.[ch]pp"):
        known.update(WORD.findall(path.read_text()))
    return named, known


def test_names_in_docstrings_and_comments_exist() -> None:
    named, known = named_and_known()
    assert len(named) > 100, "otherwise nothing is looked at"
    missing = {name: path for name, path in named.items() if name not in known | COMPOSED}
    assert not missing
