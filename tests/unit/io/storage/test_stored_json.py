"""Modified JSON files of a run: always a ValueError."""

import pytest

from cobre.io.storage.stored_json import MAX_LEVELS, parse_finite, parse_stored


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [1, MAX_LEVELS])
def test_moderately_nested_json_is_read(levels):
    assert isinstance(parse_stored(nested(levels)), list)


@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 900, 100_000])
@pytest.mark.parametrize("parse", [parse_stored, parse_finite])
def test_deeply_nested_json_is_refused(parse, levels):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(nested(levels))


def test_seeds_have_all_their_bits():
    assert parse_stored(f"[{2**64 - 1}, {-(2**64 - 1)}]") == [2**64 - 1, 1 - 2**64]


@pytest.mark.parametrize("number", [2**64, -(2**64), 10**400])
def test_larger_whole_numbers_are_refused(number):
    with pytest.raises(ValueError, match="too large"):
        parse_stored(str(number))


def test_settings_may_be_infinite():
    assert parse_stored("[Infinity, 1e999]") == [float("inf")] * 2
