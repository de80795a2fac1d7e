"""The site builds without a warning, and works offline."""

import re
import subprocess
import sys

import pytest
from snippets import DOCS

DEADLINE_S = 280
pytestmark = pytest.mark.timeout(DEADLINE_S + 20)


def sources():
    return {page: page.read_text() for page in DOCS.rglob("*.md")}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    before = sources()
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", DOCS, folder]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    assert sources() == before, "a build must leave the pages of the repository as they are"
    return folder


def test_every_page_is_built(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").exists(), page


def test_site_loads_no_external_resources(site):
    """Links may lead away; scripts, styles, fonts and images may not."""
    pattern = re.compile(
        r"<(?:script|img|iframe|source)[^>]*\ssrc=\"(https?:)?//|<link[^>]*rel=\"(?:stylesheet|preload|preconnect)[^>]*href=\"(?:https?:)?//"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        assert not pattern.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style


def test_site_links_resolve(site):
    """Check that each link leads to an existing page and to an existing anchor on it."""
    ids = {page: set(re.findall(r"\sid=\"([^\"]+)\"", page.read_text())) for page in site.rglob("*.html")}
    for page in ids:
        for target, anchor in re.findall(r"<a [^>]*href=\"([^\"#?]*)(?:#([^\"]*))?\"", page.read_text()):
            if not re.match(r"[a-z]+:", target):
                file = (page.parent / target).resolve() if target else page
                assert file.exists(), f"{page.relative_to(site)}: {target}"
                assert not anchor or anchor in ids.get(file, {anchor}), f"{page.relative_to(site)}: {target}#{anchor}"
