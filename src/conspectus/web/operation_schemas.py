"""Schemas of requests and answers, derived from the types of an operation's method."""

import inspect
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import datetime
from functools import cache, partial, reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, NewType, Union, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, GetCoreSchemaHandler, create_model
from pydantic import Field as Limited
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from conspectus.model.access import Person
from conspectus.model.annotations import (
    Declaration,
    Length,
    Range,
    annotated_hints,
    base_of,
    declaration_of,
)
from conspectus.model.chat import Allocation
from conspectus.model.checks import hints
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.filter_json import MAX_FILTER_LENGTH, filter_from_json, filter_to_json
from conspectus.model.jobs import Job, JobRates, RequestTotals
from conspectus.model.parameters import MAX_QUERY
from conspectus.model.query import Budget, QueryContext
from conspectus.model.reports import CheckReport
from conspectus.model.results import Retrieval
from conspectus.model.streams import Stream
from conspectus.operations.declared import describe_declaration, length_facts, range_facts
from conspectus.operations.operation import member_of
from conspectus.web.schemas.base import Finite, Instant, Int64, JsonObject, RequestModel, ResponseModel, Span

MAX_ELEMENTS: Final = 1_000_000
"""Maximum elements of a list when it is parsed; the settings limit how many are accepted."""
MAX_FILTERS: Final = 20
MAX_TIME_LENGTH: Final = 100
_TIME: Final = Length(0, MAX_TIME_LENGTH)
_LISTS: Final = (Sequence, Iterable, list, tuple)
_REQUEST_TYPES: Final[Mapping[Any, Any]] = {
    datetime: Instant,
    tuple[int, int]: Span,
}
_REQUEST_NAMES: Final[Mapping[Any, str]] = {
    Allocation: "AllocationBody",
    Budget: "BudgetBody",
    QueryContext: "QueryContextBody",
}
"""Names of request schemas that differ from those of their dataclasses."""
Filters = Annotated[
    Annotated[list[Annotated[str, Limited(max_length=MAX_FILTER_LENGTH)]], Limited(max_length=MAX_FILTERS)]
    | None,
    Limited(description="A JSON filter or field=value; all must match.", examples=[["kind=page"]]),
]
"""Filters in a query string."""
_PLAIN_TYPES: Final = frozenset({str, int, float, bool})
_RESPONSE_TYPES: Final[Mapping[Any, Any]] = {
    Filter: Annotated[JsonObject, BeforeValidator(filter_to_json)],
}
_ADDED_PROPERTIES: Final[Mapping[Any, Sequence[str]]] = {
    CheckReport: ("clean",),
    Job: ("outcome",),
    JobRates: ("failure_rate", "retry_rate"),
    RequestTotals: ("error_rate",),
    Stream: ("wall",),
}
"""Properties that a response has besides the fields of a dataclass."""
_HIDDEN_FIELDS: Final[Mapping[Any, Sequence[str]]] = {
    Person: ("key", "session", "identity", "expires", "syncs", "seen_by"),
    Retrieval: ("terms", "nearest"),
}
"""Fields of a dataclass that no response has."""


def _parse_object(text: str) -> Any:
    try:
        parsed = json.loads(text)
    except RecursionError as fault:
        raise ValueError("is nested too deeply") from fault
    if not isinstance(parsed, dict):
        raise ValueError("must be a JSON object")
    return parsed


_OBJECT_TEXT: Final = Annotated[str, Limited(max_length=50_000), AfterValidator(_parse_object)]


def request_type(annotation: Any, *, in_query: bool = False, or_none: bool = False) -> Any:
    """Return the request type for values of an annotation, with its bounds, help and example."""
    declaration = declaration_of(annotation)
    if in_query and base_of(annotation) == Filter:
        return Filters
    kind = _RequestTypes(in_query).bound_type(annotation, declaration)
    return with_description(kind | None if or_none or declaration.null_is_default else kind, declaration)


def with_description(kind: Any, declaration: Declaration) -> Any:
    """Return a type with the help and the example of a declaration."""
    facts = describe_declaration(declaration)
    return Annotated[kind, Limited(**facts)] if facts else kind


class _RequestTypes:
    """Derives request types with bounds. In a query string, objects and unions with text are text."""

    def __init__(self, in_query: bool) -> None:
        self._in_query = in_query

    def bound_type(self, annotation: Any, declaration: Declaration) -> Any:
        """Return the request type for values of an annotation."""
        if get_origin(annotation) is Annotated:
            return self.bound_type(get_args(annotation)[0], declaration)
        if annotation == Filter:
            return JsonObject | None
        if annotation in _REQUEST_TYPES:
            return _REQUEST_TYPES[annotation]
        if annotation in (str, int, float):
            return text_type(declaration) if annotation is str else _number(annotation, declaration.range)
        origin = get_origin(annotation)
        if origin in {Union, UnionType}:
            return self._union(get_args(annotation), declaration)
        if origin in _LISTS:
            member: Any = self._member(get_args(annotation)[0])
            length = declaration.length or Length(0, MAX_ELEMENTS)
            return Annotated[list[member], _length(length)]
        if origin is Mapping:
            return self._object(get_args(annotation)[1], declaration)
        return request_model(cast(Hashable, annotation)) if is_dataclass(annotation) else annotation

    def _union(self, members: Sequence[Any], declaration: Declaration) -> Any:
        """Return a union without members that another member covers.

        A list covers its elements, and text covers times, and numbers in a query string.
        """
        bases = {base_of(member) for member in members}
        covered = {base_of(get_args(base)[0]) for base in bases if get_origin(base) in _LISTS}
        if {datetime, str} <= bases:
            covered.add(datetime)
        if self._in_query and str in bases:
            covered.add(float)
        text_declaration = replace(declaration, length=_TIME) if datetime in bases else declaration
        return reduce(
            or_,
            (
                self.bound_type(member, text_declaration if base_of(member) is str else declaration)
                for member in members
                if base_of(member) not in covered
            ),
        )

    def _member(self, annotation: Any) -> Any:
        return self.bound_type(annotation, declaration_of(annotation))

    def _object(self, member: Any, declaration: Declaration) -> Any:
        if base_of(member) is str and declaration.length is not None:
            return Annotated[GenericAlias(dict, (str, self._member(member))), _length(declaration.length)]
        return _OBJECT_TEXT if self._in_query else JsonObject


def text_type(declaration: Declaration) -> Any:
    """Return the type of a text, with its bounds."""
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
    """Return the schema of a dataclass that a request contains."""
    annotations = annotated_hints(kind)
    members: dict[str, Any] = {}
    for field in fields(kind):
        is_nested = is_dataclass(field.default)
        field_type = request_type(annotations[field.name], or_none=is_nested)
        members[field.name] = (field_type, None if is_nested else _default(field))
    return create_model(
        _REQUEST_NAMES.get(kind, kind.__name__),
        __base__=RequestModel,
        __doc__=inspect.getdoc(kind),
        **members,
    )


def to_dataclass(hint: Any, members: Mapping[str, Any]) -> Any:
    """Return a dataclass for a method, made of the members of a request.

    Members that are not fields of it are those of a dataclass in it, such as a scope.
    """
    field_types = hints(hint)
    arguments = {}
    for field in fields(hint):
        name = member_of(hint, field.name)
        if name not in members:
            arguments[field.name] = to_dataclass(field_types[field.name], members)
        elif members[name] is not None or not is_dataclass(field.default):
            arguments[field.name] = to_argument(field_types[field.name], members[name])
    return hint(**arguments)


def to_argument(hint: Any, value: Any) -> Any:
    """Return a value of a request as the method takes it."""
    if type(value) in _PLAIN_TYPES:
        return value
    members = get_args(hint)
    if hint == Filter:
        return _to_filter(value)
    if get_origin(hint) in {Union, UnionType}:
        kinds = [member for member in members if member is not NoneType and _may_hold(member, value)]
        return to_argument(kinds[0], value) if value is not None and len(kinds) == 1 else value
    if isinstance(value, list):
        return tuple(to_argument(members[0], element) for element in value)
    if not isinstance(value, BaseModel):
        return value
    field_types = hints(hint)
    arguments = {}
    for field in fields(hint):
        content = getattr(value, field.name)
        if content is not None or not is_dataclass(field.default):
            arguments[field.name] = to_argument(field_types[field.name], content)
    return hint(**arguments)


def _to_filter(value: Any) -> Any:
    if value is None:
        return EVERYTHING
    return filter_from_json(value) if isinstance(value, dict) else value


def _may_hold(kind: Any, value: Any) -> bool:
    """Return whether a value can belong to this member of a union."""
    if isinstance(value, list):
        return get_origin(kind) in _LISTS
    return is_dataclass(kind) or not isinstance(value, BaseModel)


class AsRequested:
    """A marker of a dataclass in a body: it is read with the schema of requests for it."""

    @staticmethod
    def __get_pydantic_core_schema__(kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler.generate_schema(request_model(kind))
        return no_info_after_validator_function(partial(to_argument, kind), schema)


def response_type(hint: Any) -> Any:
    """Return the response type for values of this type."""
    if hint in _RESPONSE_TYPES:
        return _RESPONSE_TYPES[hint]
    origin, members = get_origin(hint), get_args(hint)
    if isinstance(hint, NewType):
        return response_type(base_of(hint))
    if origin in {Union, UnionType}:
        return reduce(or_, map(response_type, members))
    if origin in _LISTS:
        return GenericAlias(list, (response_type(members[0]),))
    if origin is Mapping:
        is_json = members[1] in (Any, object) or get_origin(members[1]) in {Union, UnionType}
        return JsonObject if is_json else GenericAlias(dict, tuple(map(response_type, members)))
    return response_model(cast(Hashable, hint)) if is_dataclass(hint) else hint


@cache
def response_model(kind: Any) -> type[BaseModel]:
    """Return the schema of a dataclass that a response contains."""
    field_types = hints(kind)
    annotations = annotated_hints(kind)
    members: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in _HIDDEN_FIELDS.get(kind, ()):
            field_type = response_type(field_types[field.name])
            declaration = declaration_of(annotations[field.name])
            members[field.name] = (with_description(field_type, declaration), ...)
    members |= {
        name: (hints(getattr(kind, name).fget)["return"], ...) for name in _ADDED_PROPERTIES.get(kind, ())
    }
    return create_model(kind.__name__, __base__=ResponseModel, __doc__=inspect.getdoc(kind), **members)


def answer_of(value: Any) -> BaseModel:
    """Return a dataclass as a response model."""
    return response_model(cast(Hashable, type(value))).model_validate(value)


def _default(field: Field[Any]) -> Any:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if default is MISSING:
        return ...
    return list(default) if isinstance(default, tuple) else default
