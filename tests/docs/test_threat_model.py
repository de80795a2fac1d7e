"""Every claim of the threat model names a test that exists."""

import re

import pytest
from snippets import DOCS

PAGE = DOCS / "explanation" / "threat-model.md"
HEADER = "| measure | against | test |"
TEST = re.compile(r"\[`(test_\w+)`\]\(([^)]+)\)")


def claims():
    """Return the rows of all tables of measures."""
    rows, is_inside = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        is_inside = line == HEADER or (is_inside and line.startswith("|"))
        if is_inside and line != HEADER and not line.startswith("|---"):
            rows.append(line)
    return rows


def test_every_table_of_measures_has_claims():
    assert len(claims()) > 25
    assert PAGE.read_text(encoding="utf-8").count("| measure |") == PAGE.read_text(encoding="utf-8").count(HEADER)


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim[2:40])
def test_claims_name_existing_tests(claim):
    cells = claim.strip("| ").split(" | ")
    assert len(cells) == 3, claim
    named = TEST.findall(cells[2])
    assert named, f"no test is named: {claim}"
    for name, path in named:
        text = (PAGE.parent / path).resolve().read_text(encoding="utf-8")
        assert re.search(rf"^ *(async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"
