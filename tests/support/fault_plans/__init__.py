"""Fault plans: ranks that die, stop, never arrive, misbehave or abort, and the required reaction of the others.

A plan (`plans`, `shm_plans`) runs in the parent and starts real processes one by one (`plan`); `rank_program` is what
they do. Every plan has a deadline, and must leave nothing behind; `table` runs them.
"""
