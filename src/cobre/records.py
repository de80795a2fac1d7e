"""Records: `dataclasses.dataclass`, with methods that are generated on first use.

The standard decorator compiles six or more functions for every class when its module is loaded: at 400 classes that is
a third of a second, before a study begins and again in every rank. Here `__init__` is generated at the first call, and
the other methods are shared by all records. Everything else is that of the standard library: `fields`, `replace`,
`asdict`, pickling, matching and slots. Classes that need more than that (`order`, bases that are records, fields that
`__init__` does not take) are left to it entirely.
"""

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  (as it is: type checkers know it by its name)
else:

    def dataclass(cls=None, /, *, repr=True, frozen=False, slots=False, kw_only=False, **others):  # noqa: A002
        """Decorate a class as `dataclasses.dataclass` does."""

        def decorate(cls: type) -> type:
            if others or not _is_plain(cls):
                return dataclasses.dataclass(repr=repr, frozen=frozen, slots=slots, kw_only=kw_only, **others)(cls)
            return _record(cls, show=repr, frozen=frozen, slots=slots, kw_only=kw_only)

        return decorate if cls is None else decorate(cls)


def _is_plain(cls: type) -> bool:
    """Return whether all fields are arguments, no base is a record, and no method made here is defined already."""
    if any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
        return False
    namespace = cls.__dict__
    if any(
        name in namespace for name in ("__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__")
    ):
        return False
    if any(isinstance(value, dataclasses.Field) and not value.init for value in namespace.values()):
        return False
    return not any("InitVar" in str(kind) for kind in namespace.get("__annotations__", {}).values())


def _record(cls: type, *, show: bool, frozen: bool, slots: bool, kw_only: bool) -> type:
    has_repr = "__repr__" in cls.__dict__
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    parameters = cls.__dataclass_params__  # type: ignore[attr-defined]
    parameters.init = parameters.eq = True
    parameters.repr, parameters.frozen = show, frozen
    methods: dict[str, Any] = {"__init__": _first_init(cls), "__eq__": _equals, "__signature__": _Signature()}
    methods["__hash__"] = _hash if frozen else None
    if show and not has_repr:
        methods["__repr__"] = _represent
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _first_init(cls: type) -> Callable[..., None]:
    def __init__(self: object, /, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        _make_init(cls)(self, *args, **kwargs)

    __init__.is_first = True  # type: ignore[attr-defined]
    return __init__


def _make_init(cls: type) -> Callable[..., None]:
    """Make `__init__` of a class, in place of the method that was called first."""
    positional = [item for item in dataclasses.fields(cls) if not item.kw_only]
    keyword = [item for item in dataclasses.fields(cls) if item.kw_only]
    items = [*positional, *keyword]
    is_frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    made_here = tuple(item.default_factory is not dataclasses.MISSING for item in items)
    shape = (len(positional), made_here, is_frozen, hasattr(cls, "__post_init__"))
    names = ("__record__" if any(item.name == "self" for item in items) else "self", *(item.name for item in items))
    code = _init_code(*shape)
    if not is_frozen:
        renamed = {f"field_{number}": item.name for number, item in enumerate(items)}
        code = code.replace(co_names=tuple(renamed.get(name, name) for name in code.co_names))
    scope: dict[str, Any] = {f"make_{number}": item.default_factory for number, item in enumerate(items)} | {
        "UNSET": _UNSET
    }
    if is_frozen:
        scope |= {f"set_{number}": field_setter(cls, item.name) for number, item in enumerate(items)}
    defaults = tuple(_default(item) for item in positional if _has_default(item))
    init = FunctionType(code.replace(co_varnames=names), scope, "__init__", defaults)
    init.__kwdefaults__ = {item.name: _default(item) for item in keyword if _has_default(item)}
    init.__annotations__ = {item.name: item.type for item in items} | {"return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    cls.__init__ = init  # type: ignore[misc]
    return init


@cache
def _init_code(positional: int, made_here: tuple[bool, ...], is_frozen: bool, is_checked: bool) -> CodeType:
    """Compile `__init__` for all classes of one shape; names of fields are filled in for each of them.

    Compiling a method takes fifty times as long as renaming its variables.
    """
    count = len(made_here)
    parameters = [f"value_{number}" for number in range(count)]
    if positional < count:
        parameters.insert(positional, "*")
    lines = [f"def __init__({', '.join(['self', *parameters])}):", " pass"]
    for number, is_made_here in enumerate(made_here):
        value = f"make_{number}() if value_{number} is UNSET else value_{number}" if is_made_here else f"value_{number}"
        lines.append(f" set_{number}(self, {value})" if is_frozen else f" self.field_{number} = {value}")
    if is_checked:
        lines.append(" self.__post_init__()")
    module = compile("\n".join(lines), "<record>", "exec")  # never executed: only its function is taken
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def field_setter(cls: type, name: str) -> Callable[[object, Any], None]:
    """Return a function that sets a field of a frozen record, through its slot if there is one."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda record, value: object.__setattr__(record, name, value)


class _Unset:
    """Stand-in for a value that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _has_default(item: dataclasses.Field[Any]) -> bool:
    return item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING


def _default(item: dataclasses.Field[Any]) -> Any:
    return _UNSET if item.default is dataclasses.MISSING else item.default


class _Signature:
    """The signature of a record: that of its `__init__`, for `inspect` and documentation tools."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        init = owner.__init__  # type: ignore[misc]
        if getattr(init, "is_first", False):
            init = _make_init(next(base for base in owner.__mro__ if "__init__" in base.__dict__))
        signature = inspect.signature(init)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def _compared(record: Any) -> tuple[Any, ...]:
    """Return the values of the fields that take part in comparisons."""
    kind = type(record)
    if kind not in _getters:
        names = [item.name for item in dataclasses.fields(kind) if item.compare]
        one = attrgetter(*names) if names else None
        _getters[kind] = one if one and len(names) > 1 else (lambda of: (one(of),) if one else ())
    return _getters[kind](record)


def _equals(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


@recursive_repr()
def _represent(self: Any) -> str:
    items = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(items)})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(record: Any, name: str, what: str) -> None:
    """Raise for fields of a record; subclasses may add attributes."""
    if "__dataclass_fields__" in type(record).__dict__ or name in record.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
