"""Linear programs in batches: the contract (`program`, `batches`) and its one implementation (`simplex`)."""
