"""Matching of the stages and entities of two studies."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from cobre.comparison.compared_run import ComparedRun
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """A stage or entity: its id in each study (None: the study does not have it), and its name."""

    a: int | None
    b: int | None
    name: str

    @property
    def present_in(self) -> str:
        """`both`, `A` or `B`: which of the studies has this entity."""
        return "A" if self.b is None else "B" if self.a is None else "both"


def match_stages(a: ComparedRun, b: ComparedRun, ids_a: Sequence[int], ids_b: Sequence[int]) -> list[Match]:
    """Stages that both have: matched by start date if both have dates, else by id."""
    dates_a, dates_b = a.study.starts(ids_a), b.study.starts(ids_b)
    if dates_a is None or dates_b is None:
        common = [id_ for id_ in ids_a if id_ in set(ids_b)]
        return [Match(id_, id_, label) for id_, label in zip(common, a.study.stage_labels(common), strict=True)]
    of_b = dict(zip(dates_b, ids_b, strict=True))
    common = [id_ for id_, date in zip(ids_a, dates_a, strict=True) if date in of_b]
    by_id = dict(zip(ids_a, dates_a, strict=True))
    return [
        Match(id_, of_b[by_id[id_]], label) for id_, label in zip(common, a.study.stage_labels(common), strict=True)
    ]


def match_entities(
    a: ComparedRun, b: ComparedRun, kind: str, ids_a: Sequence[int], ids_b: Sequence[int]
) -> list[Match]:
    """All of both studies: those of A in their order, then those that only B has.

    Entities match if they have the same id and name, or else the same name, if it is unique in each study. An id
    that belongs to another name in the other study is no match.
    """
    names_a = {id_: a.study.entity_name(kind, id_) for id_ in ids_a}
    names_b = {id_: b.study.entity_name(kind, id_) for id_ in ids_b}
    partners = {id_: id_ for id_ in ids_a if names_b.get(id_) == names_a[id_]}
    once_a, once_b = _used_once(names_a, partners), _used_once(names_b, partners.values())
    partners |= {id_: once_b[name] for name, id_ in once_a.items() if name in once_b}
    found = [Match(id_, partners.get(id_), names_a[id_]) for id_ in ids_a]
    taken = set(partners.values())
    return found + [Match(None, id_, names_b[id_]) for id_ in ids_b if id_ not in taken]


def _used_once(names: Mapping[int, str], taken: Collection[int]) -> dict[str, int]:
    """Ids by name, for unique names of entities that are not taken."""
    left = {id_: name for id_, name in names.items() if id_ not in taken}
    counts = Counter(left.values())
    return {name: id_ for id_, name in left.items() if counts[name] == 1}
