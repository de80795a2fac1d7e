"""Fault injection: ranks that die, stop, never arrive, misbehave or abort, and what the others must see.

A plan runs in the parent and starts real processes, one by one (`ranks`); `actions` is what they do. Every plan has a
deadline, and must leave nothing behind.
"""
