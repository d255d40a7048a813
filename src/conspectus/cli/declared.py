"""Options and arguments with the help and the bounds that annotations declare."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from inspect import unwrap
from pkgutil import resolve_name
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import typer

from conspectus.model.annotations import Declaration, annotated_hints, base_of, declaration_of

LISTS = (Sequence, Iterable, list, tuple)


class Declared(NamedTuple):
    """An option, or with `is_argument` an argument, whose help and bounds an annotation declares.

    `owner` is an annotation, the dataclass of a field, or the path of a method, whose module is then loaded
    for this command only.
    """

    owner: Any
    name: str
    flags: Sequence[str] = ()
    is_argument: bool = False
    metavar: str | None = None

    @property
    def annotation(self) -> Any:
        """The annotation."""
        if not self.name:
            return self.owner
        return _hints_of(self.owner)[self.name]


def option(owner: Any, name: str = "", *flags: str) -> Declared:
    """Return the option of a parameter, a field, or an annotation."""
    return Declared(owner, name, flags)


def argument(owner: Any, name: str = "", *, metavar: str | None = None) -> Declared:
    """Return the argument of a parameter, a field, or an annotation."""
    return Declared(owner, name, is_argument=True, metavar=metavar or name.upper())


def resolve_annotation(annotation: Any) -> Any:
    """Return the annotation of a command's parameter with its option as Typer reads it."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *metadata = get_args(annotation)
    return Annotated[
        (kind, *(_typer_info(part) if isinstance(part, Declared) else part for part in metadata))
    ]


def members_of(hint: Any) -> list[Any]:
    """Return the members of a union without None, or the type itself, without what is declared."""
    hint = base_of(hint)
    members = [] if get_origin(hint) in {Literal, Mapping, *LISTS} else get_args(hint)
    return [base_of(member) for member in members if member is not NoneType] or [hint]


def help_of(annotation: Any, declaration: Declaration) -> str:
    """Return the help of a declaration, with how times and several values are given."""
    members = members_of(annotation)
    ending = ""
    if datetime in members and "ISO 8601" not in declaration.help:
        ending += " (ISO 8601)"
    for member in members:
        if get_origin(member) is Mapping:
            ending += " (KEY=VALUE); repeatable"
        if get_origin(member) in LISTS:
            words = get_args(base_of(get_args(member)[0])) if _is_of_words(member) else ()
            ending += f" ({', '.join(words)}); repeatable" if words else "; repeatable"
    return f"{declaration.help.removesuffix('.')}{ending}." if ending else declaration.help


def _is_of_words(hint: Any) -> bool:
    """Return whether the elements of a list are words of a choice."""
    return get_origin(base_of(get_args(hint)[0])) is Literal


def _typer_info(declared: Declared) -> Any:
    annotation = declared.annotation
    declaration = declaration_of(annotation)
    bounds: dict[str, Any] = {}
    if (numbers := declaration.range) is not None:
        kind = int if int in members_of(annotation) else float
        bounds["min"] = None if numbers.above else kind(numbers.lowest)
        if numbers.highest is not None and not numbers.setting:
            bounds["max"] = kind(numbers.highest)
    text = help_of(annotation, declaration)
    if declared.is_argument:
        return typer.Argument(metavar=declared.metavar, help=text.replace("; repeatable", ""), **bounds)
    return typer.Option(*declared.flags, help=text, **bounds)


@cache
def _hints_of(owner: Any) -> dict[str, Any]:
    return annotated_hints(unwrap(resolve_name(f"conspectus.{owner}")) if isinstance(owner, str) else owner)
