"""What keeps a deck from becoming a case."""

from cobre.errors import CobreError, ValidationError


class NoBridgeError(CobreError):
    """There is no cobre-bridge that could be run, and none could be installed."""


class DeckNotConvertedError(ValidationError):
    """cobre-bridge refused a deck; it has said why."""
