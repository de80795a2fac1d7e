"""Conversion of NEWAVE and DECOMP decks by novomodelo-bridge or cobre-bridge, which run in environments of their own."""
