"""Formatting of numbers, escaping of untrusted text, and quoting for a shell."""

import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.text import (
    as_argument,
    bar,
    digits,
    duration_compact,
    duration_spelled,
    money,
    money_compact,
    money_spelled,
    percent,
    percent_spelled,
    printable,
    rate,
    scale_for,
    sparkline,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0.00 $"), (-1234.5, "-1.23 k$"), (184_506_974.0, "184.51 M$"), (7.3e12, "7,300.00 G$")],
)
def test_money_compact(value, text):
    assert money_compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (184_764_509.0, "184.8 million $"),
        (7_306_877_706.0, "7.307 billion $"),
        (4794.0, "4,794 $"),
        (-6_510_000.0, "-6.510 million $"),
        (float("nan"), "unknown"),
    ],
)
def test_money_spelled(value, text):
    assert money_spelled(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (3.21, "3.2 s"), (65.0, "1:05"), (3723.0, "1:02:03")])
def test_duration_compact(seconds, text):
    assert duration_compact(seconds) == text


def test_other_formats():
    assert money(1234567.891) == "1,234,567.89"
    assert percent(0.0278) == "2.8 %"
    assert percent(162.6) == "16,260 %"
    assert percent_spelled(0.0289) == "2.89 %"
    assert percent_spelled(1e-6) == "< 0.01 %"
    assert duration_spelled(3725) == "1 h 02 min"
    assert duration_spelled(61) == "1 min 01 s"
    assert digits(0.0) == "0"
    assert scale_for(45_000, "MW") == (1000, "GW")
    assert rate(0.05, "it") == "3 it/min"
    assert rate(12345.0, "LPs") == "12,345 LPs/s"
    assert bar(0.5, 4) == "██░░"
    assert bar(7.0, 2) == "██"


def test_sparkline_rises_with_values_and_has_its_width():
    line = sparkline([float(value) for value in range(100)], 20)
    assert len(line) == 20
    assert list(line) == sorted(line)
    assert line[-1] == "█"


@pytest.mark.parametrize("values", [[], [None], [1.0], [1.0, 1.0], [None, 2.0]])
def test_sparkline_skips_missing_values(values):
    assert len(sparkline(values, 10)) == len([value for value in values if value is not None])


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


@pytest.mark.parametrize("name", ["plain", "with space", "it's", 'say "x"', "$HOME", "a;b", "line\nbreak", "ñ 日本"])
def test_shell_round_trips_name(name):
    done = subprocess.run(f"printf %s {as_argument(Path(name))}", shell=True, capture_output=True, check=True)
    assert done.stdout.decode() == name


def test_leading_dash_is_not_an_option():
    assert as_argument("-x y") == "'./-x y'"


def test_simple_names_are_not_quoted():
    assert as_argument(Path("results/run-1")) == "results/run-1"
