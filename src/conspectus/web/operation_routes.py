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
from conspectus.model.filter import Filter, parse_filters
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.streams import CaptionRange, Stream, When
from conspectus.operations import OPERATIONS, Operation, Parameter
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.operations.operation import IF_MATCH, OMITTED, REQUIRED, record_of
from conspectus.web.etags import is_not_modified, quoted, tags_in
from conspectus.web.limits import RequestSlot
from conspectus.web.logs import API
from conspectus.web.ndjson import LINES, SENT_AS_LINES
from conspectus.web.openapi import Responses, Section, accepted, problems, with_tag
from conspectus.web.operation_schemas import (
    MAX_TIME_LENGTH,
    Filters,
    answered,
    described,
    gathered,
    given,
    requested,
    text_type,
)
from conspectus.web.schemas.base import RequestModel, ResponseModel

SLASHED: Final = frozenset({"collection", "graph", "stream"})
"""Parameters of a path that may hold a slash."""


_IN_ADDRESS: Final = frozenset({"path", "query"})


def add_routes(section: Section, operations: Iterable[Operation]) -> None:
    """Serve operations below a section's prefix, in their order."""
    for each in operations:
        _add_route(section, each)


def _add_route(section: Section, operation: Operation) -> None:
    async def call(**request_values: Any) -> Any:
        engine, response = request_values.pop("engine"), request_values.pop("response", None)
        recording: Recording | None = request_values.pop("recording", None)
        tag = request_values.pop("if_match", request_values.pop("if_none_match", None))
        values = _taken(operation, request_values, request_values.pop("body", None))
        if tag is not None and operation.verb == "PATCH":
            await _require_match(operation, engine, values, tag)
        keys = (each.key for name in operation.keyed for each in values[name])
        with nullcontext() if recording is None else recording(keys):
            answer = await operation.of(engine)(**values)
        if response is not None:
            response.headers["Location"] = f"{API}/jobs/{answer.id}"
        if operation.tagged and operation.verb == "GET":
            shown = _answer(operation).model_validate(answer)
            return unless_not_modified(shown, tag_of(shown), tag)
        return {operation.wrapped: answer} if operation.wrapped else answer

    call.__name__ = operation.name
    call.__doc__ = operation.summary

    def options() -> dict[str, Any]:
        vars(call)["__signature__"] = _signature(operation)
        return _options(operation)

    asks = _is_question(operation) and not section.dependencies
    section.defer(
        _path(operation.path),
        call,
        methods=[operation.verb],
        make=options,
        is_read_only=operation.reads,
        is_question=asks,
    )


def _signature(operation: Operation) -> inspect.Signature:
    """The values that the framework reads from a request."""
    signature = [_keyword("engine", EngineOf), *_headers(operation)]
    signature += [_apart(each) for each in _leaves(operation) if each.location in _IN_ADDRESS]
    if (body := _body(operation)) is not None:
        signature.append(_keyword("body", Annotated[body, Body()]))
    return inspect.Signature(signature)


def _options(operation: Operation) -> dict[str, Any]:
    """The arguments with which a route is registered."""
    return {
        "methods": [operation.verb],
        "status_code": operation.status,
        "response_model": _answer(operation),
        "responses": _responses(operation),
        "openapi_extra": SENT_AS_LINES if operation.as_lines and operation.verb == "POST" else None,
        "dependencies": [
            *([Unhurried] if operation.unhurried else []),
            *([Depends(without_limits)] if operation.asks_model else []),
            *([NoStore] if operation.secret else []),
        ],
    }


def _is_question(operation: Operation) -> bool:
    """Whether a request to an operation is a JSON body and nothing else, and changes nothing."""
    body_alone = all(each.location == "body" for each in _leaves(operation))
    return operation.reads and body_alone and not (operation.unhurried or operation.asks_model)


def _headers(operation: Operation) -> list[inspect.Parameter]:
    """The headers that a request has, and the response whose headers an answer sets."""
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


async def _require_match(operation: Operation, engine: Engine, values: dict[str, Any], header: str) -> None:
    """Raise PreconditionFailed unless what the GET at the same path answers has a tag of this header.

    A method that takes the fingerprint raises it itself, so that nothing comes between.
    """
    if any(each.name == IF_MATCH for each in operation.parameters):
        (document,) = (values[each.name] for each in operation.parameters if each.location == "path")
        values[IF_MATCH] = await fingerprint_in(header, document, engine)
        return
    read = next(each for each in OPERATIONS.values() if (each.verb, each.path) == ("GET", operation.path))
    ((kind, name),) = ((each.name, values[each.name]) for each in read.parameters if each.location == "path")
    shown = _answer(read).model_validate(await read.of(engine)(**{kind: name}))
    require_match(tag_of(shown), header, kind=kind, name=name)


def _path(path: str) -> str:
    for name in SLASHED:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    return path


def _answer(operation: Operation) -> Any:
    answer = None if operation.returns is NoneType else answered(operation.returns)
    answer = described(answer, operation.returned)
    if not operation.wrapped:
        return answer
    members: dict[str, Any] = {operation.wrapped: (answer, ...)}
    name = "".join(part.title() for part in operation.name.split("_"))
    return create_model(f"{name}Answer", __base__=ResponseModel, **members)


def _body(operation: Operation) -> type[BaseModel] | None:
    leaves = [each for each in _leaves(operation) if each.location == "body"]
    members: dict[str, Any] = {each.name: _member(each) for each in leaves}
    name = "".join(part.title() for part in (operation.name).split("_"))
    with catch_warnings():
        filterwarnings("ignore", "Field name .* shadows an attribute")
        return create_model(f"{name}Body", __base__=RequestModel, **members) if members else None


def _leaves(operation: Operation) -> Iterator[Parameter]:
    """The request members for the parameters of an operation."""
    return (leaf for each in operation.parameters for leaf in each.leaves)


def _member(parameter: Parameter) -> tuple[Any, Any]:
    """The type and the default of a member of a body; null means the default of a dataclass."""
    is_whole = is_dataclass(parameter.default) and is_dataclass(parameter.hint)
    kind = requested(parameter.annotation, or_none=is_whole)
    if parameter.default is REQUIRED:
        return kind, ...
    return kind, None if is_whole else _default(parameter)


def _default(parameter: Parameter) -> Any:
    if parameter.hint == Filter or parameter.default is OMITTED:
        return None
    is_made = is_dataclass(parameter.default)
    return Field(default_factory=lambda: parameter.default) if is_made else parameter.default


def _apart(parameter: Parameter) -> inspect.Parameter:
    """A parameter of the path or query."""
    if parameter.location == "path":
        declaration = parameter.declaration
        return _keyword(parameter.name, Annotated[described(text_type(declaration), declaration), Path()])
    kind = requested(parameter.annotation, in_query=True)
    return _keyword(parameter.name, Annotated[kind, Query()], _default(parameter))


def _keyword(name: str, kind: Any, default: Any = REQUIRED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _taken(operation: Operation, request_values: Mapping[str, Any], body: BaseModel | None) -> dict[str, Any]:
    named = {**request_values, **({} if body is None else dict(body))}
    for each in operation.parameters:
        if each.hint == Filter and each.location == "query":
            named[each.name] = parse_filters(named[each.name] or [])
    given_names = {name for name in request_values if request_values[name] is not None}
    held = given_names if body is None else given_names | body.model_fields_set
    values = {
        each.name: _value(each, named)
        for each in operation.parameters
        if each.location != "header" and (each.default is not OMITTED or each.name in held)
    }
    return {name: value for name, value in values.items() if value is not OMITTED}


def _value(parameter: Parameter, named: Mapping[str, Any]) -> Any:
    """The argument of a method; null means the default of a parameter that is never None."""
    if parameter.is_spread:
        return gathered(record_of(parameter.hint), named)
    value = named[parameter.name]
    if value is None and not parameter.takes_none:
        return parameter.default
    return given(parameter.hint, value)


MAX_TAGS_LENGTH = 2_000
EXAMPLE_TAG: Final = '"5d41402abc4b2a76"'


async def _engine(request: Request) -> Engine:
    engine: Engine = request.state.engine
    return engine


def of_app(name: str) -> Any:
    """The dependency on what the application has under this name."""

    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(found)


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
"""Opens a block for things with these keys: without one they would be there twice if stored twice.

Its idempotency key is not given back once anything of it is stored.
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
    """The ETag of a representation: its fingerprint or that of its document, or a hash of it."""
    own = getattr(body, "fingerprint", None)
    fingerprint = own or getattr(getattr(body, "document", None), "fingerprint", None)
    return quoted(fingerprint or hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:32])


def require_match(tag: str, header: str | None, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless If-Match, where given, names this representation."""
    if header is not None and not {tag, "*"} & set(tags_in(header)):
        raise PreconditionFailed(kind, name)


async def fingerprint_in(header: str | None, document: str, engine: Engine) -> str | None:
    """The fingerprint that If-Match asks for; of several tags, the one the document has, if any."""
    tags = tags_in(header)
    if header is None or "*" in tags:
        return None
    if len(tags) > 1:
        current = quoted((await engine.documents.get(document)).fingerprint)
        tags = [current] if current in tags else tags
    return tags[0].removeprefix('"').removesuffix('"') if tags else ""


def unless_not_modified(body: BaseModel, tag: str, header: str | None) -> Response:
    """The representation with its tag, or only that the client has it already."""
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


class ResolvedStream(TypedDict):
    """A stream as the engine is asked for it."""

    stream: SourceId
    collection: CollectionId


def found_by(stream: Stream) -> ResolvedStream:
    """By its id, in its collection."""
    return {"stream": stream.source.id, "collection": stream.source.collection}


async def _within(
    *, start: Time = None, end: Time = None, contains: Inside = False, first: First = None, last: Last = None
) -> CaptionRange:
    return CaptionRange(start, end, contains, first, last)


async def _found(stream: StreamName, engine: EngineOf, *, collection: InCollection = "default") -> Stream:
    return await engine.streams.get(stream, collection=collection)


Within = Annotated[CaptionRange, Depends(_within)]
"""Which captions of a stream, by the parameters start, end, contains, first and last."""
FoundStream = Annotated[Stream, Depends(_found)]
"""The stream of the path, by id or name. Raises NotFound."""
