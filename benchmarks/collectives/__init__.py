"""Collectives of several libraries, timed by one loop. Start reading at `cases`, then `timing`."""
