"""Writes the reference pages that are generated from the code: `python docs/_extensions/generated_pages.py`.

The pages are committed, so that they can be read without a site. A test compares them with the code.
"""

from collections.abc import Callable
from pathlib import Path

from case_page import case_page
from command_page import command_page
from config_page import config_page
from environment_page import environment_page
from findings_page import findings_page

REFERENCE = Path(__file__).parents[1] / "reference"
NOTE = "<!-- Generated: change the docstrings and messages in the code, then run `make reference`. -->\n\n"
PAGES: dict[str, Callable[[], str]] = {
    "case-directory": case_page,
    "command-line": command_page,
    "configuration": config_page,
    "environment": environment_page,
    "findings": findings_page,
}


def generated_page(name: str) -> str:
    """Return the text of a page."""
    return NOTE + PAGES[name]()


def main() -> None:
    """Write all pages."""
    for name in PAGES:
        (REFERENCE / f"{name}.md").write_text(generated_page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
