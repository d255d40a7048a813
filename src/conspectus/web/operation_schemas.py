"""Schemas of requests and answers, derived from the types of an operation's method."""

import inspect
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, NewType, Union, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, create_model
from pydantic import Field as Limited

from conspectus.model.access import Person
from conspectus.model.annotations import (
    Declaration,
    Length,
    Range,
    annotated_hints,
    base_of,
    declaration_of,
)
from conspectus.model.checks import hints
from conspectus.model.filter import EVERYTHING, Filter, filter_from_json, filter_to_json
from conspectus.model.jobs import JobRates, RequestTotals
from conspectus.model.parameters import MAX_QUERY
from conspectus.model.query import Budget, QueryContext
from conspectus.model.reports import CheckReport
from conspectus.model.results import Retrieval
from conspectus.model.streams import Stream
from conspectus.operations.declared import length_facts, range_facts, shown_facts
from conspectus.operations.operation import member_of
from conspectus.web.schemas.base import (
    Finite,
    Instant,
    Int64,
    JsonObject,
    QueryContextBody,
    RequestModel,
    ResponseModel,
    Span,
)

MAX_PARTS: Final = 1_000_000
"""Most elements of a list when it is parsed; the settings limit how many are accepted."""
MAX_FILTERS: Final = 20
MAX_FILTER_LENGTH: Final = 100_000
MAX_TIME_LENGTH: Final = 100
_TIME: Final = Length(0, MAX_TIME_LENGTH)
_LISTS: Final = (Sequence, Iterable, list, tuple)
_REQUESTED: Final[Mapping[Any, Any]] = {
    datetime: Instant,
    tuple[int, int]: Span,
    QueryContext: QueryContextBody,
}
_NAMES: Final[Mapping[Any, str]] = {Budget: "BudgetBody"}
"""Schemas of requests that are not named like their dataclass."""
Filters = Annotated[
    Annotated[list[Annotated[str, Limited(max_length=MAX_FILTER_LENGTH)]], Limited(max_length=MAX_FILTERS)]
    | None,
    Limited(description="A JSON filter or field=value; all must match.", examples=[["kind=page"]]),
]
"""Filters in a query string."""
_PLAIN: Final = frozenset({str, int, float, bool})
_ANSWERED: Final[Mapping[Any, Any]] = {
    Filter: Annotated[JsonObject, BeforeValidator(filter_to_json)],
}
_SHOWN: Final[Mapping[Any, Sequence[str]]] = {
    CheckReport: ("clean",),
    JobRates: ("failure_rate", "retry_rate"),
    RequestTotals: ("error_rate",),
    Stream: ("wall",),
}
"""Properties that an answer has besides the fields of a dataclass."""
_HIDDEN: Final[Mapping[Any, Sequence[str]]] = {Person: ("key",), Retrieval: ("terms", "nearest")}
"""Fields of a dataclass that no answer has."""


def _object(text: str) -> Any:
    try:
        read = json.loads(text)
    except RecursionError as fault:
        raise ValueError("is nested too deeply") from fault
    if not isinstance(read, dict):
        raise ValueError("must be a JSON object")
    return read


_OBJECT_TEXT: Final = Annotated[str, Limited(max_length=50_000), AfterValidator(_object)]


def requested(annotation: Any, *, in_query: bool = False, or_none: bool = False) -> Any:
    """The request type for values of an annotation, with its bounds, help and example."""
    declaration = declaration_of(annotation)
    if in_query and base_of(annotation) == Filter:
        return Filters
    kind = _Requested(in_query).bounded(annotation, declaration)
    return described(kind | None if or_none or declaration.null_is_default else kind, declaration)


def described(kind: Any, declaration: Declaration) -> Any:
    """A type with the help and the example of a declaration."""
    facts = shown_facts(declaration)
    return Annotated[kind, Limited(**facts)] if facts else kind


class _Requested:
    """Types of requests, with bounds; a query string has text for objects, and for types that allow text."""

    def __init__(self, in_query: bool) -> None:
        self._in_query = in_query

    def bounded(self, annotation: Any, declaration: Declaration) -> Any:
        """The request type for values of an annotation."""
        if get_origin(annotation) is Annotated:
            return self.bounded(get_args(annotation)[0], declaration)
        if annotation == Filter:
            return JsonObject | None
        if annotation in _REQUESTED:
            return _REQUESTED[annotation]
        if annotation in (str, int, float):
            return text_type(declaration) if annotation is str else _number(annotation, declaration.range)
        origin = get_origin(annotation)
        if origin in {Union, UnionType}:
            return self._union(get_args(annotation), declaration)
        if origin in _LISTS:
            member: Any = self._member(get_args(annotation)[0])
            length = declaration.length or Length(0, MAX_PARTS)
            return Annotated[list[member], _length(length)]
        if origin is Mapping:
            return self._object(get_args(annotation)[1], declaration)
        return request_model(cast(Hashable, annotation)) if is_dataclass(annotation) else annotation

    def _union(self, members: Sequence[Any], declaration: Declaration) -> Any:
        """A union, without what is also an element of a list in it, and without times if text is allowed."""
        bases = {base_of(each) for each in members}
        elements = {base_of(get_args(each)[0]) for each in bases if get_origin(each) in _LISTS}
        left_out = elements | ({datetime} if {datetime, str} <= bases else set())
        left_out |= {float} if self._in_query and str in bases else set()
        text = replace(declaration, length=_TIME) if datetime in bases else declaration
        kept = [each for each in members if base_of(each) not in left_out]
        return reduce(
            or_, (self.bounded(each, text if base_of(each) is str else declaration) for each in kept)
        )

    def _member(self, annotation: Any) -> Any:
        return self.bounded(annotation, declaration_of(annotation))

    def _object(self, member: Any, declaration: Declaration) -> Any:
        if base_of(member) is str and declaration.length is not None:
            return Annotated[GenericAlias(dict, (str, self._member(member))), _length(declaration.length)]
        return _OBJECT_TEXT if self._in_query else JsonObject


def text_type(declaration: Declaration) -> Any:
    """The type of a text, with its bounds."""
    kind: Any = Annotated[str, _length(declaration.length or Length(0, MAX_QUERY))]
    local = declaration.local_prefix
    if local is None:
        return kind

    def without_prefix(text: str) -> str:
        if text.startswith(local.prefix):
            raise ValueError(f"{local.prefix}PATH {local.reason}")
        return text

    return Annotated[kind, AfterValidator(without_prefix)]


def _number(kind: Any, bounds: Range | None) -> Any:
    if bounds is None:
        return Int64 if kind is int else Finite
    return Annotated[kind, Limited(**range_facts(bounds, is_whole=kind is int))]


def _length(length: Length) -> Any:
    return Limited(**length_facts(length))


@cache
def request_model(kind: Any) -> type[BaseModel]:
    """The schema of a dataclass that a request holds."""
    known = annotated_hints(kind)
    members: dict[str, Any] = {}
    for each in fields(kind):
        whole = is_dataclass(each.default)
        values = requested(known[each.name], or_none=whole)
        members[each.name] = (values, None if whole else _default(each))
    return create_model(
        _NAMES.get(kind, kind.__name__), __base__=RequestModel, __doc__=inspect.getdoc(kind), **members
    )


def gathered(hint: Any, named: Mapping[str, Any]) -> Any:
    """A dataclass as the method takes it, of the values of its fields and of those of a scope in it."""
    known = hints(hint)
    return hint(
        **{
            each.name: given(known[each.name], named[name])
            if name in named
            else gathered(known[each.name], named)
            for each, name in ((each, member_of(hint, each.name)) for each in fields(hint))
            if name not in named or named[name] is not None or not is_dataclass(each.default)
        }
    )


def given(hint: Any, value: Any) -> Any:
    """The value of a request as the method takes it."""
    if type(value) in _PLAIN:
        return value
    members = get_args(hint)
    if hint == Filter:
        return EVERYTHING if value is None else filter_from_json(value) if isinstance(value, dict) else value
    if get_origin(hint) in {Union, UnionType}:
        kinds = [each for each in members if each is not NoneType and _holds(each, value)]
        return given(kinds[0], value) if value is not None and len(kinds) == 1 else value
    if isinstance(value, list):
        return tuple(given(members[0], each) for each in value)
    if not isinstance(value, BaseModel):
        return value
    known = hints(hint)
    values = {each.name: getattr(value, each.name) for each in fields(hint)}
    return hint(
        **{
            each.name: given(known[each.name], values[each.name])
            for each in fields(hint)
            if values[each.name] is not None or not is_dataclass(each.default)
        }
    )


def _holds(kind: Any, value: Any) -> bool:
    """Whether a value can belong to this member of a union."""
    if isinstance(value, list):
        return get_origin(kind) in _LISTS
    return is_dataclass(kind) or not isinstance(value, BaseModel)


def answered(hint: Any) -> Any:
    """The response type for values of this type."""
    if hint in _ANSWERED:
        return _ANSWERED[hint]
    origin, members = get_origin(hint), get_args(hint)
    if isinstance(hint, NewType):
        return answered(base_of(hint))
    if origin in {Union, UnionType}:
        return reduce(or_, (answered(each) for each in members))
    if origin in _LISTS:
        return GenericAlias(list, (answered(members[0]),))
    if origin is Mapping:
        is_json = members[1] in (Any, object) or get_origin(members[1]) in {Union, UnionType}
        return JsonObject if is_json else GenericAlias(dict, tuple(map(answered, members)))
    return response_model(cast(Hashable, hint)) if is_dataclass(hint) else hint


@cache
def response_model(kind: Any) -> type[BaseModel]:
    """The schema of a dataclass that an answer holds."""
    known = hints(kind)
    annotated = annotated_hints(kind)
    members: dict[str, Any] = {
        each.name: (described(answered(known[each.name]), declaration_of(annotated[each.name])), ...)
        for each in fields(kind)
        if each.name not in _HIDDEN.get(kind, ())
    }
    members |= {name: (hints(getattr(kind, name).fget)["return"], ...) for name in _SHOWN.get(kind, ())}
    return create_model(kind.__name__, __base__=ResponseModel, __doc__=inspect.getdoc(kind), **members)


def answer_of(value: Any) -> BaseModel:
    """A dataclass as an answer holds it."""
    return response_model(cast(Hashable, type(value))).model_validate(value)


def _default(field: Field[Any]) -> Any:
    made = field.default if field.default_factory is MISSING else field.default_factory()
    if made is MISSING:
        return ...
    return list(made) if isinstance(made, tuple) else made
