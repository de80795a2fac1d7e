"""Parts of bench_sddp.py: measurements, contenders, report."""
