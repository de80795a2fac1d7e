"""Errors in plain words: what is marked is found again, and of many ranks' words each is said once."""

import pytest

from cobre.comm.backends.mpi.error_exchange import MAX_MESSAGE, _decode, _encode, agreed_exit
from cobre.comm.exit_report import ExitReport, attach_exit_report, exit_report_of

FULL = ExitReport("the disk is full", 5)
DRY = ExitReport("the lake is empty", 3, origin="rank 2")


def test_only_what_was_marked_ends_plainly():
    error = ValueError("no more water")
    assert exit_report_of(error) is None
    assert exit_report_of(None) is None
    attach_exit_report(error, DRY)
    assert exit_report_of(error) is DRY


@pytest.mark.parametrize(
    ("end", "words"),
    [(FULL, "the disk is full"), (DRY, "rank 2: the lake is empty"), (ExitReport("", 3, origin="rank 2"), "")],
)
def test_the_origin_is_in_front(end, words):
    assert end.text == words


def test_nothing_to_agree_upon_where_all_are_well():
    assert agreed_exit(0, [None, None]) is None


def test_rank_0_speaks_for_all_and_the_lowest_that_failed_gives_the_code():
    ends = [None, FULL, DRY]
    assert agreed_exit(0, ends) == ExitReport("the disk is full\nrank 2: the lake is empty", 5, is_agreed=True)
    assert agreed_exit(1, ends) == ExitReport("", 5, is_agreed=True)


def test_the_same_message_is_said_once_and_by_the_lowest():
    ends = [ExitReport("the lake is empty", 3), None, DRY]
    assert agreed_exit(0, ends) == ExitReport("the lake is empty", 3, is_agreed=True)


@pytest.mark.parametrize("end", [None, FULL, DRY, ExitReport("água, 水\n\x1b", 3)])
def test_ends_travel_whole(end):
    assert _decode(_encode(end)) == end


def test_a_long_message_is_cut():
    told = _decode(_encode(ExitReport("x" * (MAX_MESSAGE + 1), 3)))
    assert told.message == "x" * MAX_MESSAGE + " ..."
