"""Routes of operations, derived from the table, and the dependencies of all routes, as types.

Dependencies are coroutines, as the framework calls a plain function in a thread.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import is_dataclass
from http import HTTPStatus
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias, TypedDict
from warnings import catch_warnings, filterwarnings

from fastapi import Body, Depends, Header, Path, Query, Request, Response
from pydantic import BaseModel, Field, create_model

from conspectus.engine import Engine
from conspectus.errors import PreconditionFailed
from conspectus.model import parameters
from conspectus.model.captions import CaptionRange, When
from conspectus.model.filter import Filter
from conspectus.model.filter_json import parse_filters
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.streams import Stream
from conspectus.operations import OPERATIONS, Operation, Parameter
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.operations.operation import IF_MATCH, OMITTED, REQUIRED, record_of
from conspectus.web.etags import is_not_modified, quoted, tags_in
from conspectus.web.logs import API
from conspectus.web.ndjson import LINES, SENT_AS_LINES
from conspectus.web.openapi import Responses, Section, accepted, problems, with_tag
from conspectus.web.operation_schemas import (
    MAX_TIME_LENGTH,
    Filters,
    request_type,
    response_type,
    text_type,
    to_argument,
    to_dataclass,
    with_description,
)
from conspectus.web.request_slots import RequestSlot
from conspectus.web.schemas.base import RequestModel, ResponseModel

PARAMETERS_WITH_SLASHES: Final = frozenset({"collection", "graph", "stream"})
"""Parameters of a path that may contain a slash."""
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
        _path(operation.path),
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
        return accepted(*operation.problems)
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


def _path(path: str) -> str:
    for name in PARAMETERS_WITH_SLASHES:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
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


MAX_TAGS_LENGTH = 2_000
EXAMPLE_TAG: Final = '"5d41402abc4b2a76"'


async def _engine(request: Request) -> Engine:
    engine: Engine = request.state.engine
    return engine


def of_app(name: str) -> Any:
    """Return the dependency on a part of the application's state."""

    async def read_state(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(read_state)


async def _unhurried(request: Request) -> None:
    deadline: asyncio.Timeout = request.state.deadline
    deadline.reschedule(None)


async def without_limits(request: Request) -> None:
    """Let a request that only waits for a chat model take its time, without its request slot."""
    deadline: asyncio.Timeout = request.state.deadline
    slot: RequestSlot = request.state.slot
    if not deadline.expired():
        deadline.reschedule(None)
    slot.give_back()


async def _no_store(request: Request) -> None:
    request.state.shown_once = True


async def _filter(filter: Annotated[Filters, Query()] = None) -> Filter:
    return parse_filters(filter or [])


EngineOf = Annotated[Engine, Depends(_engine)]
Unhurried = Depends(_unhurried)
"""The route may take longer than the time limit: what it does grows with the store."""
NoStore = Depends(_no_store)
"""The answer holds a secret, of which nothing may be kept."""
Selected = Annotated[Filter, Depends(_filter)]
CollectionName = Annotated[str, Path(**facts_of(parameters.CollectionName))]
DocumentIdentifier = Annotated[str, Path(**facts_of(parameters.DocumentIdentifier))]
SourceIdentifier = Annotated[str, Path(**facts_of(parameters.SourceIdentifier))]
After = Annotated[str | None, Query(**facts_of(parameters.Cursor))]
Limit = Annotated[int, Query(**facts_of(parameters.PageLimit))]
Purge = Annotated[bool, Query(**facts_of(parameters.Purge))]
IfMatch = Annotated[
    str | None,
    Header(max_length=MAX_TAGS_LENGTH, description="The ETag that was read.", examples=[EXAMPLE_TAG]),
]
IfNoneMatch = Annotated[
    str | None,
    Header(max_length=MAX_TAGS_LENGTH, description="An ETag held already.", examples=[EXAMPLE_TAG]),
]


Recording: TypeAlias = Callable[[Iterable[str | None]], AbstractContextManager[None]]
"""Opens a block that writes documents with these keys. A document without a key would be stored twice by a
repeated request, so once the block has stored anything, the idempotency key of the request is not released.
"""


async def _recording(request: Request, engine: EngineOf) -> Recording:
    claim = getattr(request.state, "claim", None)

    def recording(keys: Iterable[str | None]) -> AbstractContextManager[None]:
        if claim is None or None not in keys:
            return nullcontext()
        person, key, at = claim
        return engine.idempotency.recording(person, key, at=at)

    return recording


RecordingOf = Annotated[Recording, Depends(_recording)]


def tag_of(body: BaseModel) -> str:
    """Return the ETag of a representation: its fingerprint or that of its document, or a hash of it."""
    document = getattr(body, "document", None)
    fingerprint = getattr(body, "fingerprint", None) or getattr(document, "fingerprint", None)
    return quoted(fingerprint or hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:32])


def require_match(tag: str, header: str | None, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless If-Match, where given, names this representation."""
    if header is not None and not {tag, "*"} & set(tags_in(header)):
        raise PreconditionFailed(kind, name)


async def fingerprint_in(header: str | None, document: str, engine: Engine) -> str | None:
    """Return the fingerprint in If-Match; of several tags, the one of the document, if it is among them."""
    tags = tags_in(header)
    if header is None or "*" in tags:
        return None
    if len(tags) > 1:
        current = quoted((await engine.documents.get(document)).fingerprint)
        tags = [current] if current in tags else tags
    return tags[0].removeprefix('"').removesuffix('"') if tags else ""


def unless_not_modified(body: BaseModel, tag: str, header: str | None) -> Response:
    """Return a representation with its tag; 304 without it if the client has it already."""
    headers = {"ETag": tag}
    if is_not_modified(tag, header):
        return Response(status_code=304, headers=headers)
    return Response(body.model_dump_json(), headers=headers, media_type="application/json")


STREAM: Final = "/streams/{stream:path}"
CAPTIONS: Final = f"{STREAM}/captions"
Time = Annotated[str | None, Query(max_length=MAX_TIME_LENGTH, **facts_of(When))]
First = Annotated[int | None, Query(**facts_of_field(CaptionRange, "first"))]
Last = Annotated[int | None, Query(**facts_of_field(CaptionRange, "last"))]
Inside = Annotated[bool, Query(**facts_of_field(CaptionRange, "contains"))]
StreamName = Annotated[str, Path(**facts_of(parameters.StreamName))]
InCollection = Annotated[str, Query(**facts_of(parameters.CollectionName))]


class StreamArguments(TypedDict):
    """The arguments of a service method that name a stream."""

    stream: SourceId
    collection: CollectionId


def stream_arguments(stream: Stream) -> StreamArguments:
    """Return the arguments that name a stream by its id, in its collection."""
    return {"stream": stream.source.id, "collection": stream.source.collection}


async def _within(
    *, start: Time = None, end: Time = None, contains: Inside = False, first: First = None, last: Last = None
) -> CaptionRange:
    return CaptionRange(start, end, contains, first, last)


async def _find_stream(
    stream: StreamName, engine: EngineOf, *, collection: InCollection = "default"
) -> Stream:
    return await engine.streams.get(stream, collection=collection)


Within = Annotated[CaptionRange, Depends(_within)]
"""The range of captions of the parameters start, end, contains, first and last."""
FoundStream = Annotated[Stream, Depends(_find_stream)]
"""The stream of the path, by id or name. Raises NotFound."""
