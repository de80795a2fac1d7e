"""Cuts: where they are kept, and which of them are active."""
