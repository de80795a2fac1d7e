"""Makes the reference pages from the code, each time the site is built: they cannot be out of date.

In the repository each of them is a short page that says where its content comes from, so that links to it lead
somewhere there as well. The site shows the generated page in its place; the file stays as it is.
"""

from case_page import case_page
from command_page import command_page
from config_page import config_page
from environment_page import environment_page
from sphinx.application import Sphinx

PAGES = {
    "reference/case-directory": case_page,
    "reference/command-line": command_page,
    "reference/configuration": config_page,
    "reference/environment": environment_page,
}


def replace_text(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the file's text by the generated page."""
    if docname in PAGES:
        source[0] = PAGES[docname]()


def generated_pages(*_: object) -> list[str]:
    """Return all generated pages, to be read again: the code may have changed while the files have not."""
    return list(PAGES)


def setup(app: Sphinx) -> dict[str, object]:
    """Register the extension with Sphinx."""
    app.connect("env-get-outdated", generated_pages)
    app.connect("source-read", replace_text)
    return {"parallel_read_safe": True}
