"""The digest over the rows of a simulation."""

import numpy as np

from cobre.study.simulation.sinks import RowDigest

VALUES = np.arange(6.0)


def digest(*calls):
    found = RowDigest()
    for call in calls:
        call(found)
    return found.hexdigest()


def test_digest_of_pieces_equals_digest_of_column():
    whole = digest(lambda found: found.feed("hydros", {"spillage_m3s": VALUES}))
    pieces = digest(lambda found: found.feed_pieces("hydros", "spillage_m3s", (VALUES[:2], VALUES[2:])))
    strided = digest(lambda found: found.feed_column("hydros", "spillage_m3s", np.repeat(VALUES, 2)[::2]))
    assert whole == pieces == strided


def test_digest_depends_on_names_order_and_bits():
    reference = digest(lambda found: found.feed_column("hydros", "spillage_m3s", VALUES))
    others = (
        ("thermals", "spillage_m3s", VALUES),
        ("hydros", "outflow_m3s", VALUES),
        ("hydros", "spillage_m3s", VALUES[::-1]),
        ("hydros", "spillage_m3s", np.nextafter(VALUES, np.inf)),
    )
    assert reference not in {digest(lambda found, other=other: found.feed_column(*other)) for other in others}
