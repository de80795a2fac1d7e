"""Bad luck, on purpose: ranks that die, stop, never come, misbehave or give up, and what the others must see.

A plan runs in the parent and starts real processes, one by one (`ranks`); `actions` is what happens in them. Every
plan has a deadline, and afterwards nothing may be left behind.
"""
