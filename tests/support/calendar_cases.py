"""Small cases in calendars other than months, each with the rule that gives the season of a day in its stages."""

from datetime import date

from crafted_case import CraftedCase, Period, months, quarters, weeks
from crafted_forms import month_of, quarter_of, week_of


def monday(year: int, week: int) -> str:
    return date.fromisocalendar(year, week, 1).isoformat()


JANUARY_IN_WEEKS = [
    Period("2024-01-01", "2024-01-08", 0),
    Period("2024-01-08", "2024-01-15", 0),
    Period("2024-01-15", "2024-01-22", 0),
    Period("2024-01-22", "2024-02-01", 0),
    Period("2024-02-01", "2024-03-01", 1),
    Period("2024-03-01", "2024-04-01", 2),
]
SATURDAYS = [
    Period("2024-01-06", "2024-01-13", 0),
    Period("2024-01-13", "2024-01-20", 0),
    Period("2024-01-20", "2024-01-27", 0),
    Period("2024-01-27", "2024-02-03", 0),
    Period("2024-02-03", "2024-03-01", 1),
    Period("2024-03-01", "2024-04-01", 2),
    Period("2024-04-01", "2024-05-01", 3),
]
STARTS_BEFORE_ITS_MONTH = [
    Period("2023-12-30", "2024-01-06", 0),
    Period("2024-01-06", "2024-02-01", 0),
    Period("2024-02-01", "2024-03-01", 1),
    Period("2024-03-01", "2024-04-01", 2),
]
MONTHS_THEN_QUARTERS = [
    *(Period(f"2024-0{m}-01", f"2024-0{m + 1}-01", m - 1) for m in range(1, 7)),
    Period("2024-07-01", "2024-10-01", 14),
    Period("2024-10-01", "2025-01-01", 15),
    Period("2025-01-01", "2025-04-01", 12),
    Period("2025-04-01", "2025-07-01", 13),
]
QUARTERS_THEN_MONTHS = [
    Period("2024-01-01", "2024-04-01", 12),
    Period("2024-04-01", "2024-07-01", 13),
    Period("2024-07-01", "2024-08-01", 6),
    Period("2024-08-01", "2024-09-01", 7),
    Period("2024-09-01", "2024-10-01", 8),
    Period("2024-10-01", "2024-11-01", 9),
    Period("2024-11-01", "2024-12-01", 10),
    Period("2024-12-01", "2025-01-01", 11),
    *(Period(f"2025-0{m}-01", f"2025-0{m + 1}-01", m - 1) for m in range(1, 7)),
]
ISO_WEEKS = [
    *(Period(monday(2020, week), monday(2020, week + 1), week - 1) for week in range(50, 53)),
    Period(monday(2020, 53), monday(2021, 1), 51),
    *(Period(monday(2021, week), monday(2021, week + 1), week - 1) for week in range(1, 4)),
]
BOTH = {"cycle_type": "custom", "seasons": months("custom")["seasons"] + quarters(12)}


def case(periods, seasons, order=1, observed=(), **rest) -> CraftedCase:
    """Return a case with the same statistics everywhere, so that the mean and deviation of any lag are known."""
    phi = {1: 0.5, 2: 0.2}
    return CraftedCase(
        periods=periods,
        seasons=seasons,
        inflow={(0, stage): (80.0, 20.0) for stage in range(-order, len(periods))},
        memory={(0, stage, lag): phi[lag] for stage in range(len(periods)) for lag in range(1, order + 1)},
        observed=[(0, *window) for window in observed],
        **rest,
    )


PAST = [("2023-10-01", "2023-11-01", 60.0), ("2023-11-01", "2023-12-01", 150.0), ("2023-12-01", "2023-12-30", 190.0)]
TO_JANUARY = [*PAST, ("2023-12-30", "2024-01-01", 260.0)]
CASES = {
    "weeks of a month": (case(JANUARY_IN_WEEKS, months(), 1, TO_JANUARY), [month_of] * 6),
    "two lags": (case(JANUARY_IN_WEEKS, months(), 2, TO_JANUARY), [month_of] * 6),
    "weeks across months": (
        case(SATURDAYS, months(), 2, [*TO_JANUARY, ("2024-01-01", "2024-01-06", 300.0)]),
        [month_of] * 7,
    ),
    "days before that nobody knows": (case(SATURDAYS, months(), 1, TO_JANUARY), [month_of] * 7),
    "a week before its month": (case(STARTS_BEFORE_ITS_MONTH, months(), 1, PAST), [month_of] * 4),
    "months then quarters": (
        case(MONTHS_THEN_QUARTERS, BOTH, 1, TO_JANUARY),
        [month_of] * 6 + [quarter_of] * 4,
    ),
    "quarters with two lags": (
        case(MONTHS_THEN_QUARTERS, BOTH, 2, TO_JANUARY),
        [month_of] * 6 + [quarter_of] * 4,
    ),
    "quarters then months": (
        case(QUARTERS_THEN_MONTHS, BOTH, 1, TO_JANUARY),
        [quarter_of] * 2 + [month_of] * 12,
    ),
    "quarters": (
        case(
            [Period(f"2024-{q:02}-01", f"{2024 + q // 10}-{(q + 2) % 12 + 1:02}-01", q // 3) for q in (1, 4, 7, 10)],
            {"cycle_type": "custom", "seasons": quarters()},
            1,
            TO_JANUARY,
        ),
        [quarter_of] * 4,
    ),
    "weeks after ISO, 53 of them": (
        case(ISO_WEEKS, weeks(), 2, [(monday(2020, w), monday(2020, w + 1), 90.0 + w) for w in (48, 49)]),
        [week_of] * len(ISO_WEEKS),
    ),
}
