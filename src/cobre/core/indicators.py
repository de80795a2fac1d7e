"""When an indicator counts something: one tolerance for all of them, since LPs are solved to a tolerance too."""

NEGLIGIBLE = 1e-6
"""MWh, MW, hm3, m3/s or $: a deficit, violation or cost up to this is none."""
NOTABLE_PENALTY_SHARE = 0.5
"""Penalties that are this share of the cost or more are worth a note."""

MIN_COST = 0.01
"""Dollars: what costs less than a cent is left out of tables of costs."""
