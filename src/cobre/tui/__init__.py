"""The live view `cobre top`: an adapter over the event stream of a run. It reads, and never touches the run."""
