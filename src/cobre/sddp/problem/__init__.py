"""The problem that is trained: its stages and openings, its digest, and a boundary policy at its end."""
