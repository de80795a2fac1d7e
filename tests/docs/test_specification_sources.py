"""The specification page: every requirement cites a passage of the founding documents, and names a test."""

import re

import pytest
from published_data import SEEDS
from snippets import DOCS

PAGE = (DOCS / "explanation" / "specification.md").read_text()
SOURCE = re.compile(r'(plan|notes|phase 1|phase 2|crate), \*([^*]+)\*: "([^"]+)"')
HEADERS = ("| asked for | source | here | tested by | deviation, and why |", "| asked for | source | measured | by |")


def rows():
    """Yield the cells of every row of the tables of requirements."""
    inside = False
    for line in PAGE.splitlines():
        if line in HEADERS:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


ROWS = list(rows())


def test_every_requirement_has_source_and_test():
    assert len(ROWS) > 70
    for row in ROWS:
        rest = SOURCE.sub("", row[1]).replace(";", "").strip()
        assert SOURCE.search(row[1]) and not rest, row[:2]
        assert len(row) in (4, 5) and all(row), row


def test_counts_match_tables():
    listed, fulfilled, deviating = map(
        int, re.search(r"(\d+) requirements are listed; (\d+) are fulfilled as they stand, (\d+) with", PAGE).groups()
    )
    assert listed == len(ROWS)
    assert fulfilled == sum(len(row) == 5 and row[4] == "-" for row in ROWS)
    assert deviating == listed - fulfilled


def documents():
    """Return the text of each section, by the page's name of the document and by heading."""
    titles = dict(re.findall(r"^\| (plan|notes|phase 1|phase 2|crate) \| (.+?) \|$", PAGE, re.MULTILINE))
    by_name = {}
    for file in sorted(SEEDS.glob("*.txt")):
        text = file.read_text()
        title = text.splitlines()[0].removeprefix("# ")
        [name] = [name for name, listed in titles.items() if title.startswith(listed)]
        by_name[name] = sections(text)
    return by_name


def sections(text):
    """Return, by heading, the text below it up to the next heading of its level or above."""
    lines = re.sub(r"```.*?```", lambda block: re.sub(r"^#", "", block[0], flags=re.MULTILINE), text, flags=re.DOTALL)
    lines = lines.splitlines()
    levels = [len(match[1]) if (match := re.match(r"(#+) ", line)) else 0 for line in lines]
    result = {}
    for start, level in enumerate(levels):
        if level:
            after = (at for at in range(start + 1, len(lines)) if 0 < levels[at] <= level)
            result[lines[start].lstrip("# ")] = normalised(" ".join(lines[start + 1 : next(after, len(lines))]))
    return result


def normalised(text):
    """Return lower-case text with single spaces."""
    return re.sub(r"\s+", " ", text).lower()


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the founding documents are not next to the repository")
def test_sources_are_in_the_documents():
    by_name = documents()
    assert len(by_name) == 5
    wrong = [
        (row[0], name, section, words)
        for row in ROWS
        for name, section, words in SOURCE.findall(row[1])
        if normalised(words) not in by_name[name].get(section, "")
    ]
    assert wrong == []
