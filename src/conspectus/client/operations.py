"""Methods of the remote engine, derived from the table of operations."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from types import NoneType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast, get_args, get_origin

from conspectus.client.encode import encoded, instant_json, metadata_json
from conspectus.client.request import Request, path_of, query_of
from conspectus.client.transport import Transport
from conspectus.errors import InvalidInput
from conspectus.model.records import Json
from conspectus.operations import OPERATIONS, Operation

P = ParamSpec("P")
T = TypeVar("T")
_LISTS: Final = (Sequence, Iterable, list, tuple)


def remote(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same operation, asked of the server, with the static types of the engine's method."""
    operation = OPERATIONS[method.__name__]
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def call(self: Any, *args: P.args, **named: P.kwargs) -> T:
        bound = signature.bind(self, *args, **named)
        bound.apply_defaults()
        answer: T = await _answer(self._channel, operation, request_of(operation, bound.arguments))
        return answer

    return cast(Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], call)


def request_of(operation: Operation, values: Mapping[str, Any]) -> Request:
    """The request for a call with these arguments. Raises InvalidInput, or NotFound for what no name is."""
    body: dict[str, Json] = {}
    query: dict[str, Any] = {}
    for each in operation.parameters:
        value = values[each.name]
        if isinstance(value, str) and get_origin(each.hint) in _LISTS:
            raise InvalidInput(each.name, "must be a list, not a string")
        told = _told(value)
        if each.location == "body":
            body[each.name] = told
        elif is_dataclass(each.hint):
            query |= cast(dict[str, Any], told)
        else:
            query[each.name] = told
    parts = [
        (each[1:-1], str(query.pop(each[1:-1]))) if each.startswith("{") else each
        for each in operation.path[1:].split("/")
    ]
    return Request(
        operation.verb,
        path_of(*parts),
        body if any(each.location == "body" for each in operation.parameters) else None,
        query=query_of(query),
        writes=operation.verb != "GET" and not operation.reads,
        once=operation.secret,
        unhurried=operation.unhurried or operation.verb == "DELETE",
    )


def _told(value: Any) -> Json:
    """A value as JSON; instants get a zone and lists are read to their end."""
    match value:
        case str() | None:
            return encoded(value)
        case datetime():
            return instant_json(value)
        case Mapping():
            return cast(Json, metadata_json(value))
        case _ if is_dataclass(value):
            return {each.name: _told(getattr(value, each.name)) for each in fields(value)}
        case Iterable():
            return [_told(each) for each in value]
    return encoded(value)


def _answer(transport: Transport, operation: Operation, request: Request) -> Awaitable[Any]:
    returns = operation.returns
    if returns is NoneType:
        return transport.answer(request)
    if operation.wrapped:
        return transport.member(returns, operation.wrapped, request)
    if get_origin(returns) in _LISTS:
        return transport.several(get_args(returns)[0], request)
    return transport.one(returns, request)
