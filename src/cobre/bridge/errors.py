"""Errors of converting a deck."""

from cobre.errors import CobreError, ValidationError


class NoBridgeError(CobreError):
    """cobre-bridge is not available and cannot be installed."""


class DeckNotConvertedError(ValidationError):
    """cobre-bridge could not convert a deck; the message has its reason."""
