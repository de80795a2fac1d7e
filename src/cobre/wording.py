"""Phrases shared by messages."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "iteration"), counted(1200, "iteration"), counted(2, "axis", "axes")
    ('1 iteration', '1,200 iterations', '2 axes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
