"""Checks of plants: limits, prices, cascade, storage, production."""
