"""The parts of the report, in the order of its table of contents."""
