"""Foreign text on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.wording import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Itaipu", "Itaipu"),
        ("Água Vermelha, 水", "Água Vermelha, 水"),
        ("a\x1b]0;title\x07b", "a\\x1b]0;title\\x07b"),
        ("é\x1b[2J", "é\\x1b[2J"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("one\r\ntwo\tthree", "one\\x0d\ntwo\\x09three"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half\ud800", "half\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert printable(text) == shown


def test_length_and_lines_can_be_limited():
    assert printable("a\nb", lines=False) == "a\\nb"
    assert printable("x" * 100, max_length=3) == "xxx..."


@given(st.text())
def test_only_line_breaks_remain_unescaped(text):
    left = printable(text).replace("\n", "")
    assert all(character.isprintable() or unicodedata.category(character) == "Zs" for character in left)
    assert printable(printable(text)) == printable(text)
