"""Writes the reference pages from the code, each time the site is built: they cannot be out of date."""

from pathlib import Path

from case_page import case_page
from command_page import command_page
from config_page import config_page
from environment_page import environment_page
from sphinx.application import Sphinx

PAGES = {
    "case-directory.md": case_page,
    "command-line.md": command_page,
    "configuration.md": config_page,
    "environment.md": environment_page,
}


def write_pages(app: Sphinx) -> None:
    """Only what has changed, so that the rest need not be built again."""
    for name, make in PAGES.items():
        file = Path(app.srcdir) / "reference" / name
        text = make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    """As soon as there is a builder."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
