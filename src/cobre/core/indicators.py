"""Thresholds of indicators in reports, tables and warnings; LPs are solved to a tolerance, so tiny values are noise."""

NEGLIGIBLE = 1e-6
"""MWh, MW, hm3, m3/s or $: a deficit, violation or cost up to this counts as zero."""
NOTABLE_PENALTY_SHARE = 0.5
"""Penalties that make up this share of the cost, or more, get a note."""

MIN_COST = 0.01
"""$: smaller costs are left out of tables of costs."""
