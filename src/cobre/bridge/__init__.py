"""Conversion of NEWAVE and DECOMP decks by cobre-bridge, which runs in an environment of its own."""
