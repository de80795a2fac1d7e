"""Errors of converting a deck."""

from cobre.errors import CobreError, ValidationError


class NoBridgeError(CobreError):
    """A bridge is not available and cannot be installed."""


class DeckNotConvertedError(ValidationError):
    """A deck could not be converted; the message has the reason."""
