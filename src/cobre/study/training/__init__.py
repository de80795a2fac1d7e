"""Training of a prepared study on all ranks: starting point, stop requests, progress and checkpoints."""
