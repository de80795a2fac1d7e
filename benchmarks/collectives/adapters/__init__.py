"""One file per library: how it makes the calls that are timed."""
