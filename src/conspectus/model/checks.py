"""Checks of values against annotations, compiled once for each annotation."""

import functools
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from functools import cache
from inspect import isclass
from itertools import chain
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Never,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from conspectus.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])
Take: TypeAlias = Callable[[str, Any], Any]
"""Returns the value of that name, converted if necessary. Raises InvalidInput."""
Readers: TypeAlias = Mapping[type, Callable[[Mapping[Any, Any]], object]]
"""Functions that create instances of some classes from a mapping."""

LARGEST = 2**63 - 1
_MAX_PREVIEW = 60
_SCALARS: Mapping[Any, str] = {
    str: "a string",
    bytes: "bytes",
    bool: "true or false",
    int: "an integer",
    float: "a finite number",
    NoneType: "None",
}


class How(NamedTuple):
    """What is allowed beyond the annotation: mappings for some classes, and numbers that cannot be stored."""

    readers: Readers = MappingProxyType({})
    any_number: bool = False


class Checked:
    """A dataclass whose fields are checked against their annotations when it is created."""

    __slots__ = ()
    how: ClassVar[How] = How()
    zoned: ClassVar[Sequence[str]] = ()
    """Fields whose instants must have a zone."""

    def __post_init__(self) -> None:
        owner: Any = type(self)
        for name, default, take in _fields(owner):
            given = getattr(self, name)
            if given is not default and (taken := take(name, given)) is not given:
                object.__setattr__(self, name, taken)
        for name in owner.zoned:
            if (moment := getattr(self, name)) is not None and moment.utcoffset() is None:
                raise InvalidInput(name, "must have a zone")


class _Rule(NamedTuple):
    """Accepted values of one member of an annotation, and their conversion; None if it rejects them."""

    allowed: Sequence[str]
    accepts: Callable[[Any], bool]
    reads: Callable[[str, Any], Any] | None = None
    always: Sequence[type] = ()
    """Types of which every instance is accepted."""


def hints(owner: Any) -> dict[str, Any]:
    """Return the annotations of a class or function; JSON, which is recursive, counts as Any."""
    return typing.get_type_hints(owner, localns={"Json": Any})


def taker(annotation: Any, how: How) -> Take:
    """Return a function that accepts values of an annotation; mappings become dataclasses."""
    options = _options(annotation)
    if Any in options or object in options:
        return _anything
    rules = [_rule(each, how) for each in options]
    allowed = _joined([each for rule in rules for each in rule.allowed])
    always = frozenset(each for rule in rules for each in rule.always)

    def take(name: str, value: Any) -> Any:
        if type(value) in always:
            return value
        for rule in rules:
            if rule.accepts(value):
                return value
        for rule in rules:
            if rule.reads is not None and (taken := rule.reads(name, value)) is not None:
                return taken
        raise InvalidInput(name, f"{shown(value)} cannot be used; give {allowed}")

    return take


def shown(value: object) -> str:
    """Format a value for messages."""
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        return "an integer of more than 64 bits"
    if isinstance(value, str | bytes | int | float | NoneType):
        return f"{value!r:.{_MAX_PREVIEW}}"
    return f"a value of type {type(value).__name__}"


def checked(function: F, how: How) -> F:
    """Return the function with a check of its arguments before each call."""
    parameters = inspect.signature(function).parameters.values()
    names = [
        each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]

    compiled = cache(functools.partial(_takes, function, how))

    def taken(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Iterator[Any], dict[str, Any]]:
        takes = compiled()
        first = (
            takes.get(name, _parameter_values)(name, value) for name, value in zip(names, args, strict=False)
        )
        others = {
            name: takes.get(name, takes.get("**", _parameter_values))(name, value)
            for name, value in named.items()
        }
        return chain(first, args[len(names) :]), others

    @functools.wraps(function)
    async def asynchronous(*args: Any, **named: Any) -> Any:
        positional, others = taken(args, named)
        return await function(*positional, **others)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        positional, others = taken(args, named)
        return function(*positional, **others)

    return cast(F, asynchronous if inspect.iscoroutinefunction(function) else call)


def _takes(function: Callable[..., Any], how: How) -> Mapping[str, Take]:
    """Return the check of each argument; other keyword arguments use that of `**`."""
    known = hints(function)
    known.pop("return", None)
    several = [
        each for each in inspect.signature(function).parameters.values() if each.kind is each.VAR_KEYWORD
    ]
    for each in several:
        inner = known.pop(each.name)
        if get_origin(inner) is Unpack:
            known |= {**hints(get_args(inner)[0]), "**": Never}
    takes = {name: taker(each, how) for name, each in known.items() if each is not Never}
    if "**" in known:
        takes["**"] = _unknown(", ".join(takes))
    return takes


def _unknown(names: str) -> Take:
    def refuse(name: str, _: object) -> None:
        raise InvalidInput(name, f"is not an argument; give {names}")

    return refuse


def _parameter_values(_: str, value: Any) -> Any:
    return value


@cache
def _fields(owner: Any) -> Sequence[tuple[str, object, Take]]:
    known = hints(owner)
    takes = [(each.name, each.default, taker(known[each.name], owner.how)) for each in fields(owner)]
    return [each for each in takes if each[2] is not _anything]


def _joined(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return " or ".join([", ".join(distinct[:-1]), distinct[-1]]) if len(distinct) > 1 else distinct[0]


def _anything(_: str, value: Any) -> Any:
    return value


def _options(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, NewType):
        return _options(annotation.__supertype__)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(inner for each in get_args(annotation) for inner in _options(each))
    return (annotation,)


def _rule(annotation: Any, how: How) -> _Rule:
    origin = get_origin(annotation) or annotation
    if annotation in _SCALARS:
        always = () if annotation in (int, float) else (annotation,)
        return _Rule([_SCALARS[annotation]], _scalar(annotation, how), always=always)
    if origin is Literal:
        values = get_args(annotation)
        return _Rule([*map(repr, values)], lambda value: isinstance(value, str) and value in values)
    if origin is Callable:
        return _Rule(["a function"], callable)
    if isclass(origin) and issubclass(origin, Mapping):
        return _mapping(get_args(annotation))
    if (
        isclass(origin)
        and issubclass(origin, Iterable)
        and origin not in (str, bytes)
        and get_args(annotation)
    ):
        return _iterable(origin, get_args(annotation), how)
    return _instance(origin, how)


def _scalar(kind: Any, how: How) -> Callable[[Any], bool]:
    if kind not in (int, float):
        return lambda value: isinstance(value, kind)
    number = int if kind is int else (int, float)
    if how.any_number:
        return lambda value: isinstance(value, number) and not isinstance(value, bool)
    return lambda value: isinstance(value, number) and not isinstance(value, bool) and _is_storable(value)


def _is_storable(value: float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= LARGEST


def _mapping(inner: Sequence[Any]) -> _Rule:
    """Accept mappings with string keys, and check values only if the annotation says so."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
            return False
        return tuple(inner) != (str, str) or all(isinstance(each, str) for each in value.values())

    return _Rule(
        ["a mapping of strings" if tuple(inner) == (str, str) else "a mapping with strings as keys"], accepts
    )


def _iterable(origin: type, inner: Sequence[Any], how: How) -> _Rule:
    fixed = issubclass(origin, tuple) and Ellipsis not in inner
    takes = [taker(each, how) for each in inner if each is not Ellipsis]
    sequence = issubclass(origin, Sequence)
    plain = frozenset(inner[:1]) & {str, float}
    allowed = [f"{len(inner)} values" if fixed else "a list"]

    def reads(name: str, value: Any) -> Any:
        # The type of most values decides at once; a check against an abstract class takes a microsecond.
        if type(value) not in (tuple, list):
            value = value.tolist() if hasattr(value, "__array__") else value
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
                return None
            if isinstance(value, Set):
                value = list(value)
            elif not isinstance(value, Sequence):
                return None if sequence else (takes[0](name, each) for each in value)
        if fixed and len(value) != len(inner):
            return None
        if not plain.issuperset(map(type, value)) or (float in plain and not math.isfinite(sum(value))):
            every = zip(takes if fixed else takes * len(value), value, strict=True)
            value = [take(f"{name}[{number}]", each) for number, (take, each) in enumerate(every)]
        return tuple(value) if issubclass(origin, tuple) else value

    return _Rule(allowed, lambda _: False, reads)


def _instance(kind: Any, how: How) -> _Rule:
    allowed = [f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"]
    if getattr(kind, "_is_protocol", False):
        names = [name for name in vars(kind) if not name.startswith("_")]
        return _Rule(allowed, lambda value: all(hasattr(value, name) for name in names))
    read = how.readers.get(kind) or (_reader(kind) if issubclass(kind, Checked) else None)
    return _Rule(
        allowed,
        lambda value: isinstance(value, kind),
        read and (lambda _, value: read(value) if isinstance(value, Mapping) else None),
        always=(kind,),
    )


def _reader(kind: Any) -> Callable[[Mapping[Any, Any]], object]:
    known = [each.name for each in fields(kind)]

    def read(value: Mapping[Any, Any]) -> object:
        for name in value:
            if name not in known:
                raise InvalidInput(shown(name), f"is not a field of {kind.__name__}; give {', '.join(known)}")
        try:
            made: object = kind(**value)
        except TypeError as fault:
            raise InvalidInput(kind.__name__, str(fault)) from fault
        return made

    return read
