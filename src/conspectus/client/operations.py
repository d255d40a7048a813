"""Methods of the remote engine, derived from the table of operations."""

import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from types import NoneType
from typing import Any, Final, TypeVar, cast, get_args, get_origin
from urllib.parse import quote

from conspectus.client.request import Request, instant_json, metadata_json, path_of, query_of, to_json
from conspectus.client.transport import RemoteService, Transport
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.memory.scopes import check_scope, choose_scope_or_all
from conspectus.model.checks import hints
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.filter_json import filter_to_json
from conspectus.model.memory import Scope, ScopeNames
from conspectus.model.records import Json
from conspectus.model.validation import checked_arguments
from conspectus.operations.operation import OMITTED, Operation, Parameter, member_of, record_of
from conspectus.operations.table import OPERATIONS

S = TypeVar("S", bound=RemoteService)
_LISTS: Final = (Sequence, Iterable, list, tuple)


def derive_client(service: type[S]) -> type[S]:
    """Return a base class with a method for each operation of a service that the class itself lacks."""
    written = {
        name for ancestor in service.__mro__ if issubclass(ancestor, RemoteService) for name in vars(ancestor)
    }
    (base,) = (ancestor for ancestor in service.__mro__ if Service in ancestor.__bases__)
    for name, method in vars(base).items():
        if inspect.iscoroutinefunction(method) and not name.startswith("_") and name not in written:
            operation = OPERATIONS.get(f"{base.__name__}.{name}")
            call = (
                _refuse_remotely(method)
                if operation is None
                else checked_arguments(_remote(method, operation))
            )
            setattr(service, name, call)
    return service


def _remote(method: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def call(self: RemoteService, *args: Any, **named: Any) -> Any:
        bound = signature.bind(self, *args, **named)
        bound.apply_defaults()
        values = {**bound.arguments, **bound.kwargs}
        if "scope" in values:
            names = cast(
                ScopeNames, {name: named[name] for name in ScopeNames.__annotations__ if name in named}
            )
            values["scope"] = choose_scope_or_all(values["scope"], names)
        return await _answer(self._channel, operation, request_of(operation, values))

    return call


def _refuse_remotely(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(*_: Any, **__: Any) -> Any:
        raise PermissionDenied(f"call {method.__name__} on a server", "an engine that has the store open")

    return call


def request_for(method: Callable[..., Any], **values: Any) -> Request:
    """Return the request for a call of a service's method, for calls that take several requests."""
    return request_of(OPERATIONS[method.__qualname__], values)


def request_of(operation: Operation, values: Mapping[str, Any]) -> Request:
    """Return the request for a call with these arguments. Raises InvalidInput or NotFound."""
    values = _with_fields(operation.fields_of, operation, values) if operation.fields_of else values
    body: dict[str, Json] = {}
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for parameter in operation.parameters:
        value = values.get(parameter.name, parameter.default)
        if value is OMITTED:
            continue
        if isinstance(value, str) and get_origin(parameter.hint) in _LISTS:
            raise InvalidInput(parameter.name, "must be a list, not a string")
        if parameter.is_spread and not is_dataclass(value):
            value = record_of(parameter.hint)(value)
        encoded_value = (
            _filter(parameter, value) if parameter.hint == Filter else _json_value(parameter.hint, value)
        )
        if parameter.location == "header":
            headers |= {} if value is None else {"If-Match": f'"{quote(value, errors="surrogatepass")}"'}
            continue
        parts = _flat(parameter, encoded_value) if parameter.is_spread else {parameter.name: encoded_value}
        for leaf in parameter.leaves:
            (body if leaf.location == "body" else query)[leaf.name] = parts[leaf.name]
    words = operation.path[1:].split("/")
    path = [
        (_kind(word, before), str(query.pop(word[1:-1]))) if word.startswith("{") else word
        for before, word in zip(["", *words], words, strict=False)
    ]
    return Request(
        operation.verb,
        path_of(*path),
        body if any(parameter.location == "body" for parameter in operation.parameters) else None,
        query=query_of(query),
        headers=headers,
        writes=operation.verb != "GET" and not operation.reads,
        once=operation.secret,
        recorded=bool(operation.keyed),
        unhurried=operation.unhurried or operation.verb == "DELETE",
    )


def _kind(word: str, before: str) -> str:
    """Return the kind of a path parameter: a `{name}` has the kind of the segment before it."""
    return before.removesuffix("s") if word == "{name}" else word[1:-1]


def _with_fields(kind: Any, operation: Operation, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace a query or request object by its fields; for some only the options count.

    Raises InvalidInput for values that the engine would reject.
    """
    overrides = {field.name: values[field.name] for field in fields(kind) if field.name in values}
    query = overrides.get("query")
    full_query = (
        replace(query, **{**overrides, "query": query.query})
        if isinstance(query, kind)
        else kind(**overrides)
    )
    omitted_fields = {parameter.name for parameter in operation.parameters if parameter.default is OMITTED}
    query_fields = {
        field.name: getattr(full_query, field.name)
        for field in fields(kind)
        if field.name not in omitted_fields
    }
    return {**values, **query_fields}


def _flat(parameter: Parameter, encoded_value: Json) -> dict[str, Json]:
    """Yield the leaves of a parameter, including the fields of nested dataclasses."""
    owner = record_of(parameter.hint)
    members = {
        member_of(owner, name): value for name, value in cast(Mapping[str, Json], encoded_value).items()
    }
    for name in members.keys() - {leaf.name for leaf in parameter.leaves}:
        members |= cast(Mapping[str, Json], members.pop(name))
    return members


def _filter(parameter: Parameter, value: Filter) -> Json:
    if parameter.location == "body":
        return filter_to_json(value)
    return None if value == EVERYTHING else json.dumps(filter_to_json(value))


def _json_value(hint: Any, value: Any) -> Json:
    """Return a value as JSON; iterables are consumed.

    An instant gets a zone, except where text is allowed: text is read in the zone of the stream.
    """
    if hint == Filter:
        return filter_to_json(value)
    members = get_args(hint)
    match value:
        case str() | None:
            return to_json(value)
        case datetime():
            return to_json(value) if str in members else instant_json(value)
        case Mapping():
            return cast(Json, metadata_json(value))
        case _ if is_dataclass(value):
            field_types = hints(type(value))
            if isinstance(value, Scope):
                check_scope(value)
            return {
                field.name: _json_value(field_types[field.name], getattr(value, field.name))
                for field in fields(value)
            }
        case Iterable():
            return [_json_value(_member(members), member) for member in value]
    return to_json(value)


def _member(members: Sequence[Any]) -> Any:
    """Return the element type of a list type."""
    lists = [member for member in members if get_origin(member) in _LISTS]
    return get_args(lists[0])[0] if lists else next(iter(members), None)


def _answer(transport: Transport, operation: Operation, request: Request) -> Awaitable[Any]:
    returns = operation.returns
    if returns is NoneType:
        return transport.answer(request)
    if operation.wrapped:
        return transport.member(returns, operation.wrapped, request)
    if get_origin(returns) in _LISTS:
        return transport.several(get_args(returns)[0], request)
    return transport.one(returns, request)
