"""Links that leave docs/ lead to pages that show the file. The same links work where the repository is browsed."""

import posixpath
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.highlighting import PygmentsBridge

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "_source"
LEXERS = {".py": "python", ".toml": "toml", ".sh": "bash", ".yaml": "yaml", ".json": "json", ".md": "markdown"}

Page = tuple[str, dict[str, object], str]


def redirect_links(app: Sphinx, doctree: nodes.document) -> None:
    """Turn links to files outside of docs/ into links to their pages."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(doctree.findall(_is_file_link)):
        target = (here / link["reftarget"]).resolve()
        if isinstance(link, addnodes.pending_xref):  # MyST takes Markdown for a page of ours, and drops its suffix
            target = target.with_name(target.name + ".md")
        if target.is_relative_to(ROOT) and not target.is_relative_to(app.srcdir) and target.is_file():
            name = f"{FOLDER}/{target.relative_to(ROOT).as_posix()}"
            _linked(app.env).setdefault(app.env.docname, set()).add(name)
            uri = posixpath.relpath(f"{name}.html", posixpath.dirname(app.env.docname) or ".")
            link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def _is_file_link(node: nodes.Node) -> bool:
    return isinstance(node, addnodes.download_reference) or (
        isinstance(node, addnodes.pending_xref) and node.get("refdomain") == "doc"
    )


def source_pages(app: Sphinx) -> Iterator[Page]:
    """Yield a page for each linked source file."""
    bridge = PygmentsBridge("html", app.config.pygments_style or "default")
    for name in sorted(set().union(*_linked(app.env).values())):
        file = ROOT / name.removeprefix(f"{FOLDER}/")
        lexer = LEXERS.get(file.suffix, "text")
        code = bridge.highlight_block(file.read_text(encoding="utf-8"), lexer, linenos=False)
        title = file.relative_to(ROOT).as_posix()
        yield name, {"title": title, "body": f"<h1>{title}</h1>{code}"}, "page.html"


def forget_links(_: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop the links of a document that will be read again."""
    _linked(env).pop(docname, None)


def _linked(env: BuildEnvironment) -> dict[str, set[str]]:
    """Return links by document, stored in the environment so that pages survive partial builds."""
    if not hasattr(env, "sources_by_document"):
        env.sources_by_document = {}  # type: ignore[attr-defined]
    linked: dict[str, set[str]] = env.sources_by_document  # type: ignore[attr-defined]
    return linked


def setup(app: Sphinx) -> dict[str, object]:
    """Remove our links before Sphinx collects downloads."""
    app.connect("env-purge-doc", forget_links)
    app.connect("doctree-read", redirect_links, priority=1)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": False}
