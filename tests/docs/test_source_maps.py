"""The maps of the source are complete and name only existing files."""

import re
import tomllib

import pytest
from snippets import DOCS, ROOT, blocks

PACKAGE = ROOT / "src" / "cobre"
CONTRACT = "layers of the package: upper imports lower, siblings do not know each other"
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
