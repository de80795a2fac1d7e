"""Numbers as people read them."""

import pytest

from cobre.runs.formatting import bar, duration, rate, short_money, sparkline
from cobre.wording import money, percent


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "-"), (0.0, "0.00 $"), (-1234.5, "-1.23 k$"), (184_506_974.0, "184.51 M$"), (7.3e12, "7,300.00 G$")],
)
def test_short_money(value, words):
    assert short_money(value) == words


@pytest.mark.parametrize(("seconds", "words"), [(None, "-"), (3.21, "3.2 s"), (65.0, "1:05"), (3723.0, "1:02:03")])
def test_duration(seconds, words):
    assert duration(seconds) == words


def test_others():
    assert money(1234567.891) == "1,234,567.89"
    assert percent(0.0278) == "2.8 %"
    assert percent(162.6) == "16,260 %"
    assert rate(0.05, "it") == "3 it/min"
    assert rate(12345.0, "LPs") == "12,345 LPs/s"
    assert bar(0.5, 4) == "██░░"
    assert bar(7.0, 2) == "██"


def test_sparkline_rises_with_the_values_and_keeps_to_its_width():
    line = sparkline([float(value) for value in range(100)], 20)
    assert len(line) == 20
    assert list(line) == sorted(line)
    assert line[-1] == "█"


@pytest.mark.parametrize("values", [[], [None], [1.0], [1.0, 1.0], [None, 2.0]])
def test_sparkline_of_little(values):
    assert len(sparkline(values, 10)) == len([value for value in values if value is not None])
