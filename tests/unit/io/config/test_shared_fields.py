"""A plain field of config.json needs a record and a configuration class, and nothing that copies it."""

from dataclasses import dataclass

from cobre.core.config import TimeLimit
from cobre.io.config.method_records import TimeLimitRecord, shared_fields


@dataclass(frozen=True)
class Nested:
    value: int = 1


@dataclass(frozen=True)
class Record:
    count: int = 3
    names: tuple[str, ...] = ("a",)
    unset: float | None = None
    nested: Nested = Nested()
    several: tuple[Nested, ...] = (Nested(),)
    of_the_file_alone: bool = True


@dataclass(frozen=True)
class Settings:
    count: int = 0
    names: tuple[str, ...] = ()
    unset: float | None = 2.0
    nested: str = "made by the caller"
    several: tuple[str, ...] = ()


def test_values_with_the_same_name_are_shared():
    assert shared_fields(Record(), Settings) == {"count": 3, "names": ("a",)}
    assert Settings(**shared_fields(Record(), Settings)).unset == 2.0


def test_the_type_of_a_rule_is_no_field_of_it():
    assert shared_fields(TimeLimitRecord("time_limit", 60.0), TimeLimit) == {"seconds": 60.0}
