"""Routes of operations, derived from the table."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import is_dataclass
from http import HTTPStatus
from types import NoneType
from typing import Annotated, Any, Final
from warnings import catch_warnings, filterwarnings

from fastapi import Body, Depends, Path, Query, Response
from pydantic import BaseModel, Field, create_model

from conspectus.engine import Engine
from conspectus.model.filter import Filter
from conspectus.model.filter_json import parse_filters
from conspectus.operations.operation import IF_MATCH, OMITTED, REQUIRED, Operation, Parameter, record_of
from conspectus.operations.table import OPERATIONS
from conspectus.web.dependencies import (
    EngineOf,
    IfMatch,
    IfNoneMatch,
    NoStore,
    Recording,
    RecordingOf,
    Unhurried,
    without_limits,
)
from conspectus.web.etags import fingerprint_in, require_match, tag_of, unless_not_modified
from conspectus.web.logs import API
from conspectus.web.ndjson import LINES, SENT_AS_LINES
from conspectus.web.openapi import Responses, Section, describe_accepted, problems, with_tag
from conspectus.web.operation_schemas import (
    request_type,
    response_type,
    text_type,
    to_argument,
    to_dataclass,
    with_description,
)
from conspectus.web.schemas.base import RequestModel, ResponseModel

_IN_URL: Final = frozenset({"path", "query"})


def add_routes(section: Section, operations: Iterable[Operation]) -> None:
    """Serve operations below a section's prefix, in their order."""
    for operation in operations:
        _add_route(section, operation)


def _add_route(section: Section, operation: Operation) -> None:
    async def call(**request_values: Any) -> Any:
        engine, response = request_values.pop("engine"), request_values.pop("response", None)
        recording: Recording | None = request_values.pop("recording", None)
        tag = request_values.pop("if_match", request_values.pop("if_none_match", None))
        arguments = _arguments(operation, request_values, request_values.pop("body", None))
        if tag is not None and operation.verb == "PATCH":
            await _require_match(operation, engine, arguments, tag)
        keys = (document.key for name in operation.keyed for document in arguments[name])
        with nullcontext() if recording is None else recording(keys):
            answer = await operation.of(engine)(**arguments)
        if response is not None:
            response.headers["Location"] = f"{API}/jobs/{answer.id}"
        if operation.tagged and operation.verb == "GET":
            representation = _response_model(operation).model_validate(answer)
            return unless_not_modified(representation, tag_of(representation), tag)
        return {operation.wrapped: answer} if operation.wrapped else answer

    call.__name__ = operation.name
    call.__doc__ = operation.summary

    def options() -> dict[str, Any]:
        vars(call)["__signature__"] = _signature(operation)
        return _options(operation)

    section.defer(
        _path(operation),
        call,
        methods=[operation.verb],
        make=options,
        is_read_only=operation.reads,
        is_question=_is_question(operation) and not section.dependencies,
    )


def _signature(operation: Operation) -> inspect.Signature:
    """Return the parameters that the framework reads from a request."""
    signature = [_keyword("engine", EngineOf), *_headers(operation)]
    signature += [_url_parameter(leaf) for leaf in _leaves(operation) if leaf.location in _IN_URL]
    if (body := _body_model(operation)) is not None:
        signature.append(_keyword("body", Annotated[body, Body()]))
    return inspect.Signature(signature)


def _options(operation: Operation) -> dict[str, Any]:
    """Return the arguments with which a route is registered."""
    return {
        "methods": [operation.verb],
        "status_code": operation.status,
        "response_model": _response_model(operation),
        "responses": _responses(operation),
        "openapi_extra": SENT_AS_LINES if operation.as_lines and operation.verb == "POST" else None,
        "dependencies": [
            *([Unhurried] if operation.unhurried else []),
            *([Depends(without_limits)] if operation.asks_model else []),
            *([NoStore] if operation.secret else []),
        ],
    }


def _is_question(operation: Operation) -> bool:
    """Return whether a request to an operation is a JSON body and nothing else, and changes nothing."""
    is_only_body = all(leaf.location == "body" for leaf in _leaves(operation))
    return operation.reads and is_only_body and not (operation.unhurried or operation.asks_model)


def _headers(operation: Operation) -> list[inspect.Parameter]:
    """Return the parameters of request headers, and of the response whose headers the route sets."""
    if operation.keyed:
        return [_keyword("recording", RecordingOf)]
    if operation.status == HTTPStatus.ACCEPTED:
        return [_keyword("response", Response)]
    if operation.tagged and operation.verb == "GET":
        return [_keyword("if_none_match", IfNoneMatch, None)]
    return [_keyword("if_match", IfMatch, None)] if operation.tagged else []


def _responses(operation: Operation) -> Responses:
    if operation.status == HTTPStatus.ACCEPTED:
        return describe_accepted(*operation.problems)
    if operation.tagged and operation.verb == "GET":
        return with_tag(*operation.problems)
    if operation.as_lines and operation.verb == "GET":
        return {200: {"content": LINES}, **problems()}
    return problems(*([412] if operation.tagged else []), *operation.problems)


async def _require_match(
    operation: Operation, engine: Engine, arguments: dict[str, Any], header: str
) -> None:
    """Raise PreconditionFailed unless the response of the GET at the same path has a tag of this header.

    A method with the parameter `if_match` raises it itself, so that no write comes between.
    """
    if any(parameter.name == IF_MATCH for parameter in operation.parameters):
        [document] = [
            arguments[parameter.name] for parameter in operation.parameters if parameter.location == "path"
        ]
        arguments[IF_MATCH] = await fingerprint_in(header, document, engine)
        return
    read = next(
        candidate
        for candidate in OPERATIONS.values()
        if (candidate.verb, candidate.path) == ("GET", operation.path)
    )
    [kind] = [parameter.name for parameter in read.parameters if parameter.location == "path"]
    name = arguments[kind]
    representation = _response_model(read).model_validate(await read.of(engine)(**{kind: name}))
    require_match(tag_of(representation), header, kind=kind, name=name)


def _path(operation: Operation) -> str:
    """Return the path with a mark at each parameter that may contain slashes."""
    path = operation.path
    for parameter in operation.parameters:
        if parameter.location == "path" and parameter.declaration.may_have_slash:
            path = path.replace(f"{{{parameter.name}}}", f"{{{parameter.name}:path}}")
    return path


def _response_model(operation: Operation) -> Any:
    returned = None if operation.returns is NoneType else response_type(operation.returns)
    returned = with_description(returned, operation.returned)
    if not operation.wrapped:
        return returned
    members: dict[str, Any] = {operation.wrapped: (returned, ...)}
    return create_model(f"{_schema_name(operation)}Answer", __base__=ResponseModel, **members)


def _body_model(operation: Operation) -> type[BaseModel] | None:
    members: dict[str, Any] = {
        leaf.name: _body_member(leaf) for leaf in _leaves(operation) if leaf.location == "body"
    }
    if not members:
        return None
    with catch_warnings():
        filterwarnings("ignore", "Field name .* shadows an attribute")
        return create_model(f"{_schema_name(operation)}Body", __base__=RequestModel, **members)


def _schema_name(operation: Operation) -> str:
    return "".join(part.title() for part in operation.name.split("_"))


def _leaves(operation: Operation) -> Iterator[Parameter]:
    """Return the members of a request for the parameters of an operation."""
    return (leaf for parameter in operation.parameters for leaf in parameter.leaves)


def _body_member(parameter: Parameter) -> tuple[Any, Any]:
    """Return the type and the default of a member of a body; null means the default of a dataclass."""
    is_nested = is_dataclass(parameter.default) and is_dataclass(parameter.hint)
    kind = request_type(parameter.annotation, or_none=is_nested)
    if parameter.default is REQUIRED:
        return kind, ...
    return kind, None if is_nested else _default(parameter)


def _default(parameter: Parameter) -> Any:
    if parameter.hint == Filter or parameter.default is OMITTED:
        return None
    if is_dataclass(parameter.default):
        return Field(default_factory=lambda: parameter.default)
    return parameter.default


def _url_parameter(parameter: Parameter) -> inspect.Parameter:
    """Return a parameter of the path or query."""
    if parameter.location == "path":
        declaration = parameter.declaration
        kind = with_description(text_type(declaration), declaration)
        return _keyword(parameter.name, Annotated[kind, Path()])
    kind = request_type(parameter.annotation, in_query=True)
    return _keyword(parameter.name, Annotated[kind, Query()], _default(parameter))


def _keyword(name: str, kind: Any, default: Any = REQUIRED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _arguments(
    operation: Operation, request_values: Mapping[str, Any], body: BaseModel | None
) -> dict[str, Any]:
    """Return the arguments of the method of an operation. Omitted members get its defaults."""
    members = {**request_values, **({} if body is None else dict(body))}
    names = {name for name, content in request_values.items() if content is not None}
    if body is not None:
        names |= body.model_fields_set
    arguments = {}
    for parameter in operation.parameters:
        if parameter.hint == Filter and parameter.location == "query":
            members[parameter.name] = parse_filters(members[parameter.name] or [])
        if parameter.location == "header" or (parameter.default is OMITTED and parameter.name not in names):
            continue
        argument = _argument(parameter, members)
        if argument is not OMITTED:
            arguments[parameter.name] = argument
    return arguments


def _argument(parameter: Parameter, members: Mapping[str, Any]) -> Any:
    """Return the argument of a method; null means the default of a parameter that is never None."""
    if parameter.is_spread:
        return to_dataclass(record_of(parameter.hint), members)
    member = members[parameter.name]
    if member is None and not parameter.takes_none:
        return parameter.default
    return to_argument(parameter.hint, member)
