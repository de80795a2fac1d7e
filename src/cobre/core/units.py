"""Conversions between units."""

HM3_PER_M3S_HOUR = 0.0036
HOURS_PER_DAY = 24.0
MONTHS_PER_YEAR = 12
