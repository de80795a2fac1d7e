"""One iteration: forward, gather costs, backward, gather cuts, bounds, cut selection, agreement whether to stop.

States are gathered only where cut selection or an export reads them; cuts only where ranks do not share one memory.
"""
