"""Records behave like data classes of the standard library, and compile on first use."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field

import pytest

from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class FrozenRecord:
    """A typical record."""

    x: float
    y: float = 2.0
    tags: tuple[str, ...] = ()
    seen: list[int] = field(default_factory=list, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardRecord:
    """The same as a dataclass of the standard library."""

    x: float
    y: float = 2.0
    tags: tuple[str, ...] = ()
    seen: list[int] = field(default_factory=list, compare=False, repr=False)


@dataclass
class MutableRecord:
    """A mutable record that checks itself."""

    size: int
    name: str = field(default="none", kw_only=True)

    def __post_init__(self):
        self.size = abs(self.size)


class Named(FrozenRecord):
    """A class with additional attributes, derived from a record."""


def test_values_defaults_and_repr():
    point, standard = FrozenRecord(1.0, tags=("a",)), StandardRecord(1.0, tags=("a",))
    assert (point.x, point.y, point.tags, point.seen) == (1.0, 2.0, ("a",), [])
    assert repr(point) == repr(standard).replace("StandardRecord", "FrozenRecord")
    assert FrozenRecord(1.0).seen is not FrozenRecord(1.0).seen
    assert FrozenRecord.__match_args__ == StandardRecord.__match_args__
    assert dataclasses.asdict(point) == dataclasses.asdict(standard)
    assert [item.name for item in dataclasses.fields(FrozenRecord)] == ["x", "y", "tags", "seen"]
    assert MutableRecord(-3, name="b") == MutableRecord(3, name="b")


def test_equality_and_hashes():
    assert FrozenRecord(1.0) == FrozenRecord(1.0, seen=[1])
    assert FrozenRecord(1.0) != FrozenRecord(2.0)
    assert FrozenRecord(1.0) != StandardRecord(1.0)
    assert hash(FrozenRecord(1.0)) == hash(FrozenRecord(1.0, seen=[1])) == hash(StandardRecord(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(MutableRecord(1))


@pytest.mark.parametrize("record", [FrozenRecord(1.0, 3.0, ("b",)), MutableRecord(4, name="c")])
def test_records_can_be_copied_and_replaced(record):
    for found in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert found == record
    assert dataclasses.replace(FrozenRecord(1.0), x=5.0) == FrozenRecord(5.0)


def test_frozen_records_raise_on_change():
    for point in (FrozenRecord(1.0), StandardRecord(1.0)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            point.x = 2.0
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del point.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        FrozenRecord(1.0).other = 2.0
    named = Named(1.0)
    named.other = 3.0
    assert named.other == 3.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.x = 2.0


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1.0, 2.0, (), [], 5), {}), ((1.0,), {"z": 1.0}), ((1.0,), {"x": 2.0})]
)
def test_argument_errors_match_standard_library(args, kwargs):
    with pytest.raises(TypeError) as standard:
        StandardRecord(*args, **kwargs)
    for _ in range(2):  # by the method that compiles, and by the compiled one
        with pytest.raises(TypeError) as own:
            FrozenRecord(*args, **kwargs)
        assert str(own.value) == str(standard.value).replace("StandardRecord", "FrozenRecord")


def test_signatures_and_slots_match_standard_library():
    assert str(inspect.signature(FrozenRecord)) == str(inspect.signature(StandardRecord))
    assert not hasattr(FrozenRecord(1.0), "__dict__")
    assert FrozenRecord.__slots__ == StandardRecord.__slots__


def test_nothing_is_compiled_before_the_first_record():
    @dataclass(frozen=True, slots=True)
    class Late:
        value: int

    first = Late.__init__
    assert Late(1).value == 1
    assert Late.__init__ is not first
    compiled = Late.__init__
    assert Late(2) == Late(value=2)
    assert Late.__init__ is compiled


def test_unsupported_options_fall_back_to_the_standard_library():
    @dataclass(frozen=True, slots=True, order=True)
    class Rank:
        number: int

    @dataclass(frozen=True, slots=True)
    class Child(FrozenRecord):
        z: float = 0.0

    @dataclass(frozen=True)
    class Counted:
        values: list[int]
        count: int = field(init=False, default=7)

    assert Rank(1) < Rank(2)
    assert Child(1.0, z=4.0).z == 4.0
    assert Counted([1]).count == 7
