"""What a run does to its output directory."""
