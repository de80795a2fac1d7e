"""Ranks on one machine that share memory; the work is done by `cobre._native`."""
