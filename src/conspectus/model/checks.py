"""Checks of values against annotations, compiled once for each annotation."""

import functools
import inspect
import math
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import fields
from functools import cache
from inspect import isclass
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
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
from conspectus.model.annotations import Declaration, Range, annotated_hints, base_of, declaration_of

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
    """What is allowed beyond the annotation: mappings for some classes, and numbers that cannot be stored.

    `settings` returns the settings that bounds may name, of the object whose method is called.
    """

    readers: Readers = MappingProxyType({})
    any_number: bool = False
    settings: Callable[[Any], object] | None = None


class Checked:
    """A dataclass whose fields are checked against their annotations when it is created."""

    __slots__ = ()
    how: ClassVar[How] = How()
    zoned: ClassVar[Sequence[str]] = ()
    """Fields whose instants must have a zone."""

    def __post_init__(self) -> None:
        owner: Any = type(self)
        for name, default, take in _fields(owner):
            argument = getattr(self, name)
            if argument is not default and (converted := take(name, argument)) is not argument:
                object.__setattr__(self, name, converted)
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
    declaration = declaration_of(annotation)
    if Any in options or object in options:
        return _take_anything
    rules = [_rule(option, how) for option in options]
    allowed = _join_names([name for rule in rules for name in rule.allowed])
    always = frozenset(kind for rule in rules for kind in rule.always)

    def take(name: str, value: Any) -> Any:
        if type(value) in always:
            return value
        for rule in rules:
            if rule.accepts(value):
                return value
        for rule in rules:
            if rule.reads is not None and (converted := rule.reads(name, value)) is not None:
                return converted
        preview = "a secret of another type" if declaration.is_secret else format_value(value)
        raise InvalidInput(name, f"{preview} cannot be used; give {allowed}")

    return _bound(take, declaration, counts_elements=any(map(_is_list, options)))


def format_value(value: object) -> str:
    """Format a value for messages."""
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        return "an integer of more than 64 bits"
    if isinstance(value, str | bytes | int | float | NoneType):
        return f"{value!r:.{_MAX_PREVIEW}}"
    return f"a value of type {type(value).__name__}"


def _bound(take: Take, declaration: Declaration, *, counts_elements: bool) -> Take:
    """Return a function that also rejects what a declaration excludes; a setting is checked elsewhere.

    A length is that of a list, if a list is accepted beside one text or mapping.
    """
    single = (str, Mapping) if counts_elements else ()
    length = declaration.length
    bounds = declaration.range if declaration.range is None or not declaration.range.setting else None
    if length is None and bounds is None:
        return take

    def take_within(name: str, value: Any) -> Any:
        value = take(name, value)
        if length is not None and isinstance(value, Sized) and not isinstance(value, single):
            length.require(name, value)
        if bounds is not None and isinstance(value, int | float):
            bounds.require(name, value)
        return value

    return take_within


class SettingRange(NamedTuple):
    """A parameter whose highest number is a setting: its position and default."""

    name: str
    position: int
    default: Any
    bounds: Range

    def require(self, settings: object, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Raise InvalidInput if the argument of a call is outside."""
        is_positional = self.position < len(positional)
        value = positional[self.position] if is_positional else named.get(self.name, self.default)
        if isinstance(value, int | float):
            self.bounds.require(self.name, value, settings)


class Arguments:
    """The checks of a function's arguments, made when it is first called."""

    def __init__(self, function: Callable[..., Any], how: How) -> None:
        self._function = function
        self._how = how
        parameters = inspect.signature(function).parameters.values()
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._names = [parameter.name for parameter in parameters if parameter.kind in by_position]

    def check(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call, converted if necessary. Raises InvalidInput."""
        takes = self._takes
        positional = [
            takes.get(name, _parameter_values)(name, value)
            for name, value in zip(self._names, args, strict=False)
        ]
        others = {
            name: takes.get(name, takes.get("**", _parameter_values))(name, value)
            for name, value in named.items()
        }
        for limit in self._setting_ranges:
            assert self._how.settings is not None
            limit.require(self._how.settings(args[0]), positional, others)
        return [*positional, *args[len(self._names) :]], others

    @functools.cached_property
    def _declarations(self) -> Mapping[str, Declaration]:
        return {name: declaration_of(hint) for name, hint in self._expand(annotated_hints).items()}

    @functools.cached_property
    def _takes(self) -> Mapping[str, Take]:
        """The check of each argument; other keyword arguments use that of `**`."""
        types = self._expand(annotated_hints)
        takes = {name: taker(hint, self._how) for name, hint in types.items() if hint is not Never}
        if "**" in types:
            takes["**"] = _refuse_unknown(", ".join(takes))
        return takes

    def _expand(self, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the annotation of each argument; `**` stands for all that are not named."""
        types = read(self._function)
        types.pop("return", None)
        for parameter in inspect.signature(self._function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                inner = types.pop(parameter.name)
                if get_origin(inner) is Unpack:
                    types |= {**read(get_args(inner)[0]), "**": Never}
        return types

    @functools.cached_property
    def _setting_ranges(self) -> Sequence[SettingRange]:
        if self._how.settings is None:
            return ()
        defaults = {
            parameter.name: parameter.default
            for parameter in inspect.signature(self._function).parameters.values()
        }
        return [
            SettingRange(
                name,
                self._names.index(name) if name in self._names else sys.maxsize,
                defaults.get(name),
                bounds,
            )
            for name, bounds in (
                (name, declaration.range) for name, declaration in self._declarations.items()
            )
            if bounds is not None and bounds.setting
        ]


def add_checks(function: F, how: How) -> F:
    """Return the function with a check of its arguments before each call."""
    arguments = Arguments(function, how)

    @functools.wraps(function)
    async def asynchronous(*args: Any, **named: Any) -> Any:
        positional, others = arguments.check(args, named)
        return await function(*positional, **others)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        positional, others = arguments.check(args, named)
        return function(*positional, **others)

    return cast(F, asynchronous if inspect.iscoroutinefunction(function) else call)


def require_settings(values: "Checked", settings: object, *, of: str = "") -> None:
    """Raise InvalidInput for a field above the setting that its annotation names.

    `of` begins the name of the field in the message.
    """
    owner: Any = type(values)
    for name, bounds in _find_setting_fields(owner):
        if (number := getattr(values, name)) is not None:
            bounds.require(f"{of}{name}", number, settings)


def _refuse_unknown(names: str) -> Take:
    def refuse(name: str, _: object) -> None:
        raise InvalidInput(name, f"is not an argument; give {names}")

    return refuse


def _parameter_values(_: str, value: Any) -> Any:
    return value


@cache
def _fields(owner: Any) -> Sequence[tuple[str, object, Take]]:
    annotated = annotated_hints(owner)
    takes = [(field.name, field.default, taker(annotated[field.name], owner.how)) for field in fields(owner)]
    return [check for check in takes if check[2] is not _take_anything]


@cache
def _find_setting_fields(owner: Any) -> Sequence[tuple[str, Range]]:
    """Return the fields of a class whose highest number is a setting, with their ranges."""
    ranges = ((name, declaration_of(hint).range) for name, hint in annotated_hints(owner).items())
    return [(name, bounds) for name, bounds in ranges if bounds is not None and bounds.setting]


def _join_names(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) > 1:
        return " or ".join([", ".join(distinct[:-1]), distinct[-1]])
    return distinct[0]


def _take_anything(_: str, value: Any) -> Any:
    return value


def _options(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, NewType) or get_origin(annotation) is Annotated:
        return _options(base_of(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return tuple(inner for member in get_args(annotation) for inner in _options(member))
    return (annotation,)


def _is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isclass(origin) and issubclass(origin, Iterable) and not issubclass(origin, Mapping)


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
        return _take_mapping(get_args(annotation))
    if _is_list(annotation):
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
    if isinstance(value, float):
        return math.isfinite(value)
    return abs(value) <= LARGEST


def _take_mapping(inner: Sequence[Any]) -> _Rule:
    """Accept mappings with string keys, and check values only if the annotation says so."""
    has_texts = [base_of(hint) for hint in inner] == [str, str]

    def accepts(value: Any) -> bool:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return False
        return not has_texts or all(isinstance(text, str) for text in value.values())

    return _Rule(["a mapping of strings" if has_texts else "a mapping with strings as keys"], accepts)


def _iterable(origin: type, inner: Sequence[Any], how: How) -> _Rule:
    fixed = issubclass(origin, tuple) and Ellipsis not in inner
    takes = [taker(hint, how) for hint in inner if hint is not Ellipsis]
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
                return None if sequence else (takes[0](name, member) for member in value)
        if fixed and len(value) != len(inner):
            return None
        if not plain.issuperset(map(type, value)) or (float in plain and not math.isfinite(sum(value))):
            every = zip(takes if fixed else takes * len(value), value, strict=True)
            value = [take(f"{name}[{number}]", member) for number, (take, member) in enumerate(every)]
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
    field_names = [field.name for field in fields(kind)]

    def read(value: Mapping[Any, Any]) -> object:
        for name in value:
            if name not in field_names:
                raise InvalidInput(
                    format_value(name), f"is not a field of {kind.__name__}; give {', '.join(field_names)}"
                )
        try:
            instance: object = kind(**value)
        except TypeError as fault:
            raise InvalidInput(kind.__name__, str(fault)) from fault
        return instance

    return read
