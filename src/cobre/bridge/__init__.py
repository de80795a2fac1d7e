"""Conversion of NEWAVE and DECOMP decks by novomodelo-bridge or cobre-bridge, in environments of their own."""
