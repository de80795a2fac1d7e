"""Errors in plain words: what is marked is found again, and of many ranks' words each is said once."""

import pytest

from cobre.comm.backends.mpi.assembly import MAX_MESSAGE, _decode, _encode, agreed_end
from cobre.comm.plain_end import PlainEnd, mark, plain_end

FULL = PlainEnd("the disk is full", 5)
DRY = PlainEnd("the lake is empty", 3, origin="rank 2")


def test_only_what_was_marked_ends_plainly():
    error = ValueError("no more water")
    assert plain_end(error) is None
    assert plain_end(None) is None
    mark(error, DRY)
    assert plain_end(error) is DRY


@pytest.mark.parametrize(
    ("end", "words"),
    [(FULL, "the disk is full"), (DRY, "rank 2: the lake is empty"), (PlainEnd("", 3, origin="rank 2"), "")],
)
def test_the_origin_is_in_front(end, words):
    assert end.words == words


def test_nothing_to_agree_upon_where_all_are_well():
    assert agreed_end(0, [None, None]) is None


def test_rank_0_speaks_for_all_and_the_lowest_that_failed_gives_the_code():
    ends = [None, FULL, DRY]
    assert agreed_end(0, ends) == PlainEnd("the disk is full\nrank 2: the lake is empty", 5, is_agreed=True)
    assert agreed_end(1, ends) == PlainEnd("", 5, is_agreed=True)


def test_the_same_message_is_said_once_and_by_the_lowest():
    ends = [PlainEnd("the lake is empty", 3), None, DRY]
    assert agreed_end(0, ends) == PlainEnd("the lake is empty", 3, is_agreed=True)


@pytest.mark.parametrize("end", [None, FULL, DRY, PlainEnd("água, 水\n\x1b", 3)])
def test_ends_travel_whole(end):
    assert _decode(_encode(end)) == end


def test_a_long_message_is_cut():
    told = _decode(_encode(PlainEnd("x" * (MAX_MESSAGE + 1), 3)))
    assert told.message == "x" * MAX_MESSAGE + " ..."
