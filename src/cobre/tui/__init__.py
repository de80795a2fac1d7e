"""The live view `cobre top`: a read-only adapter over the event stream of a run."""
