"""Conversions between units."""

HM3_PER_M3S_HOUR = 0.0036
HOURS_PER_DAY = 24.0
MONTHS_PER_YEAR = 12
MWH_PER_HM3 = 1e6 / 3600.0  # of a plant that makes 1 MW of 1 m3/s
