"""Arithmetic on calendar months."""

from datetime import date


def first_of_month(day: date) -> date:
    """The first day of the month of a day."""
    return day.replace(day=1)


def month_after(day: date) -> date:
    """The first day of the next month."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def is_month(start: date, end: date) -> bool:
    """Whether a period is exactly one calendar month."""
    return start.day == 1 and end == month_after(start)
