"""Simulation of a policy on all ranks, and its tables."""
