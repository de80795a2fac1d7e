"""The maps of the source are complete and name only existing files."""

import re
import tomllib

import pytest
from snippets import DOCS, ROOT, blocks

PACKAGE = ROOT / "src" / "cobre"
CONTRACT = "layers of the package: upper imports lower, siblings do not know each other"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
# Tracked files only, not build products or installed packages.
FOLDERS = ("src", "native", "tests", "benchmarks", "examples", "docs", "deploy")


def parts_of_the_package():
    folders = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    return folders | {file.stem for file in PACKAGE.glob("[!_]*.py")}


def test_readme_map_has_every_package():
    [text] = [block.text for block in blocks(ROOT / "README.md") if block.text.startswith("native/")]
    named = set(re.findall(r"(\w+)(?:/|\.py)(?=\s|;|,|$)", text))
    assert parts_of_the_package() - named == set()


def test_documented_layers_match_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["name"] == CONTRACT]
    [page] = [block.text for block in blocks(DOCS / "explanation" / "life-of-a-run.md") if block.language == "text"]
    shown = [re.split(r"\s{2,}|$", line)[0] for line in page.splitlines() if not line.startswith(" ")]
    assert shown == [layer.replace("cobre.", "") for layer in layers]


@pytest.mark.parametrize("page", sorted((DOCS / "adr").glob("0*.md")), ids=lambda page: page.name[:4])
def test_source_files_named_by_decisions_exist(page):
    files = [f"/{file.relative_to(ROOT).as_posix()}" for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")]
    named = set(re.findall(r"`([\w./-]+\.(?:py|cpp|hpp|js|css))`", page.read_text()))
    assert {name for name in named if not any(file.endswith(f"/{name}") for file in files)} == set()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_named_after_source_files_lead_to_them(page):
    links = re.findall(r"\[`?([\w/.-]+\.(?:py|cpp|hpp))`?\]\(([^)#]+)", page.read_text())
    assert [(label, target) for label, target in links if not f"/{target}".endswith(f"/{label}")] == []


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_said_to_be_in_a_file_are_in_it(page):
    """As in `name` in [file.py](path), and in `name` in `path/file.py`."""
    text = page.read_text()
    linked = re.findall(r"`([A-Za-z_]\w*)` in\s+\[[^\]]*\]\(([^)#]+\.(?:py|cpp|hpp))\)", text)
    claims = [(name, (page.parent / target).resolve()) for name, target in linked]
    for name, target in re.findall(r"`([A-Za-z_]\w*)` in\s+`([\w/]+/[\w/]+\.(?:py|cpp|hpp))`", text):
        claims += [(name, file) for base in (ROOT, PACKAGE) if (file := base / target).exists()]
    assert [name for name, file in claims if not re.search(rf"\b{name}\b", file.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_have_headers_and_blank_lines_are_single(page):
    text = re.sub(r"^ *```.*?^ *```", "(code)", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert text.startswith("<!-- Generated") or "\n\n\n" not in text
    rows = [block for block in re.split(r"\n(?!\|)", text) if "\n|" in block]
    headless = [block for block in rows if not re.search(r"\n\|[-:| ]+\|(\n|$)", block)]
    assert headless == []


def test_amendments_are_named_on_both_pages():
    amends, amended = set(), set()
    for page in (DOCS / "adr").glob("0*.md"):
        status = re.search(r"^Status:.*?(?=\n\n)", page.read_text(), re.DOTALL | re.MULTILINE).group()
        for verb, rest in re.findall(r"([Aa]mended by|[Aa]mends)((?:(?![Aa]mend).)*)", status, re.DOTALL):
            pairs = [(page.name[:4], other) for other in re.findall(r"\]\((\d{4})-", rest)]
            if verb.lower() == "amends":
                amends |= set(pairs)
            else:
                amended |= {(other, this) for this, other in pairs}
    assert amends == amended
