"""One iteration: forward, gather states, backward, gather cuts, bounds, convergence."""
