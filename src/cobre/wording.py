"""Phrases, and numbers as text, that messages share."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "iteration"), counted(1200, "iteration"), counted(2, "axis", "axes")
    ('1 iteration', '1,200 iterations', '2 axes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def singular(kind: str) -> str:
    """One entity of a kind.

    >>> singular("hydros"), singular("buses"), singular("pumping_stations")
    ('hydro', 'bus', 'pumping_station')
    """
    return "bus" if kind == "buses" else kind.removesuffix("s")


def plural(noun: str) -> str:
    """The kind of an entity; the opposite of `singular`.

    >>> plural("hydro"), plural("bus")
    ('hydros', 'buses')
    """
    return "buses" if noun == "bus" else f"{noun}s"


def money(value: float | None, digits: int = 2) -> str:
    """An amount in $ with thousands separators, without the sign; `-` for None.

    >>> money(1234567.891), money(None)
    ('1,234,567.89', '-')
    """
    return "-" if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """A share of 1 in percent, with one decimal below 1,000 %; `-` for None.

    >>> percent(0.1234), percent(12.3456)
    ('12.3 %', '1,235 %')
    """
    if share is None:
        return "-"
    return f"{100 * share:.1f} %" if abs(share) < 10 else f"{100 * share:,.0f} %"
