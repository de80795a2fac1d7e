"""The parts of bench_sddp.py: what is measured, who takes part, and how it is told."""
