"""How long an iteration takes on more ranks than this machine has: a small model, and what feeds it."""
