"""Exit reports: attached to errors, exchanged between ranks, and printed once."""

import pytest

from cobre.comm.backends.mpi.call_checks import MAX_MESSAGE, agreed_exit, decode_report, encode_report
from cobre.comm.exit_report import ExitReport, attach_exit_report, exit_report_of

FULL = ExitReport("the disk is full", 5)
DRY = ExitReport("the lake is empty", 3, origin="rank 2")


def test_error_has_a_report_only_if_one_was_attached():
    error = ValueError("no more water")
    assert exit_report_of(error) is None
    assert exit_report_of(None) is None
    attach_exit_report(error, DRY)
    assert exit_report_of(error) is DRY


@pytest.mark.parametrize(
    ("report", "text"),
    [(FULL, "the disk is full"), (DRY, "rank 2: the lake is empty"), (ExitReport("", 3, origin="rank 2"), "")],
)
def test_text_begins_with_the_origin(report, text):
    assert report.text == text


def test_no_report_is_agreed_if_no_rank_failed():
    assert agreed_exit(0, [None, None]) is None


def test_rank_0_prints_all_messages_and_the_lowest_failed_rank_gives_the_exit_code():
    reports = [None, FULL, DRY]
    assert agreed_exit(0, reports) == ExitReport("the disk is full\nrank 2: the lake is empty", 5, is_agreed=True)
    assert agreed_exit(1, reports) == ExitReport("", 5, is_agreed=True)


def test_equal_messages_are_printed_once_with_the_origin_of_the_lowest_rank():
    reports = [ExitReport("the lake is empty", 3), None, DRY]
    assert agreed_exit(0, reports) == ExitReport("the lake is empty", 3, is_agreed=True)


@pytest.mark.parametrize("report", [None, FULL, DRY, ExitReport("água, 水\n\x1b", 3)])
def test_reports_survive_encoding(report):
    assert decode_report(encode_report(report)) == report


def test_long_message_is_truncated():
    decoded = decode_report(encode_report(ExitReport("x" * (MAX_MESSAGE + 1), 3)))
    assert decoded.message == "x" * MAX_MESSAGE + " ..."
