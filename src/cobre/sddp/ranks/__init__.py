"""How work and memory are divided among ranks: blocks of paths, shared regions, and who sees them."""
