"""Arguments and fields from outside: checked where they come in, filters and other values as mappings too."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Final, Never, TypeVar, Unpack, cast, get_args, get_origin

from conspectus.errors import InvalidInput
from conspectus.model.checks import Checked, How, Take, hints, taker
from conspectus.model.filter import Eq
from conspectus.model.filter_json import filter_from_mapping

F = TypeVar("F", bound=Callable[..., Any])
HOW: Final = How(MappingProxyType({Eq: filter_from_mapping}))


class Validated(Checked):
    """A checked dataclass that may be given a filter as a mapping."""

    __slots__ = ()
    how: ClassVar[How] = HOW


def check_methods(cls: type[Any]) -> None:
    """Have the public methods of a class raise InvalidInput for arguments of other types than annotated."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(cls, name, checked_arguments(method))


def checked_arguments(function: F) -> F:
    """The same function, with its arguments checked before it begins."""
    parameters = inspect.signature(function).parameters.values()
    names = [
        each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]

    def taken(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Iterator[Any], dict[str, Any]]:
        takes = _takes(function)
        first = (takes.get(name, _as_given)(name, value) for name, value in zip(names, args, strict=False))
        others = {
            name: takes.get(name, takes.get("**", _as_given))(name, value) for name, value in named.items()
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


@functools.cache
def _takes(function: Callable[..., Any]) -> Mapping[str, Take]:
    """How each argument is taken; of keyword arguments that have no name of their own, the one of `**`."""
    known = hints(function)
    known.pop("return", None)
    several = [
        each for each in inspect.signature(function).parameters.values() if each.kind is each.VAR_KEYWORD
    ]
    for each in several:
        inner = known.pop(each.name)
        if get_origin(inner) is Unpack:
            known |= {**hints(get_args(inner)[0]), "**": Never}
    takes = {name: taker(each, HOW) for name, each in known.items() if each is not Never}
    if "**" in known:
        takes["**"] = _unknown(takes)
    return takes


def _unknown(takes: Mapping[str, Take]) -> Take:
    def refuse(name: str, _: object) -> None:
        raise InvalidInput(name, f"is not an argument; give {', '.join(takes)}")

    return refuse


def _as_given(_: str, value: Any) -> Any:
    return value
