"""From the numbers of a stage to its linear program."""
