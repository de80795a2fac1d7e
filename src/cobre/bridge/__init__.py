"""cobre-bridge, which turns decks of NEWAVE and DECOMP into cases, run in an environment of its own."""
