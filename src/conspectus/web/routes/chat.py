"""Chats: a model's answers from what the store holds, as they are made."""

from collections.abc import Set as AbstractSet
from typing import Annotated

from fastapi import Path, Request, Response

from conspectus.access.policy import require_scope
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.access import Person
from conspectus.model.chat import ChatRequest
from conspectus.model.ids import EXAMPLE_ID
from conspectus.model.parameters import MAX_ID
from conspectus.ports.jobs import on_behalf_of
from conspectus.web.chat_bodies import ChatAnswer, ChatBody
from conspectus.web.chat_handover import CHAT, ChatStreams, RemoteAnswer, RemoteAnswerResponse, remote_answer
from conspectus.web.chat_stream import ChatStream
from conspectus.web.dependencies import EngineOf, of_app, without_limits
from conspectus.web.openai_chat import Chunks, CompletionRequest, read_answer, read_completion
from conspectus.web.openapi import ReadOnly, Responses, Section
from conspectus.web.operation_schemas import response_type
from conspectus.web.problem_details import answer_problem, problem_of_failure
from conspectus.web.schemas.openai_chat import (
    CompletionAnswer,
    CompletionBody,
    EmbeddingAnswer,
    EmbeddingsAnswer,
    EmbeddingsBody,
    EmbeddingUsageAnswer,
    ModelAnswer,
    ModelsAnswer,
    OpenAIProblem,
)
from conspectus.web.sse import STREAM, EventStream, Frames, Plain
from conspectus.web.subscriptions import LastEvent, Listeners, describe_stream

OPENAI_ERRORS: Responses = {"default": {"model": OpenAIProblem, "description": "An error in OpenAI's form."}}
router = Section("chat")
openai = Section("chat", responses=OPENAI_ERRORS)
EVENTS_BEFORE_HEAD = 2
"""Events that are awaited before the head is sent, so that errors before them can have a status.

The second event is the first of the model.
"""
StreamsOf = Annotated[ChatStreams, of_app("streams")]
STREAM_HEADER = {
    STREAM: {"description": "The stream's name, to go on with it.", "schema": {"type": "string"}}
}


ChatIdentifier = Annotated[
    str, Path(min_length=1, max_length=MAX_ID, description="Id of the answer.", examples=[EXAMPLE_ID])
]


@router.post(
    "/chat",
    response_model=response_type(ChatAnswer),
    responses=describe_stream(429, headers=STREAM_HEADER),
    dependencies=[ReadOnly],
)
async def chat(
    body: ChatBody, request: Request, engine: EngineOf, streams: StreamsOf
) -> Response | ChatAnswer:
    """Ask the chat model, with what the store holds; the answer comes as events, or whole."""
    plain = (body.events or streams.settings.chat_events) == "text"
    resumable = body.stream and not plain
    stream = await _begin_stream(body.request(), request, engine, streams, resumable=resumable)
    if body.stream:
        return EventStream(stream, Plain() if plain else Frames(stream.id), streams.settings)
    return await read_answer(stream, request.receive)


@router.get(
    "/chat/{stream}",
    responses={204: {"description": "There is no more of it."}, **describe_stream(headers=STREAM_HEADER)},
)
async def resume_chat(
    stream: ChatIdentifier, request: Request, engine: EngineOf, streams: StreamsOf, last: LastEvent = None
) -> Response:
    """Go on with an answer where the connection was lost, for as long as it is kept."""
    person: Person = request.state.person
    require_scope(person, "read", "continue a chat")
    first = _parse_last_event(last, stream)
    if not streams.has(stream) and engine.chat_registry is not None:
        return await _from_other_process(stream, first, request, engine)
    sources = streams.find(stream, first, person=person.id).sources
    await _require_visible(stream, {source.document for source in sources}, engine)
    answer_stream = streams.find(stream, first, person=person.id)
    if answer_stream.finished and first > answer_stream.count:
        return Response(status_code=204)
    await without_limits(request)
    return EventStream(answer_stream, Frames(stream), streams.settings, first=first)


async def _from_other_process(stream: str, first: int, request: Request, engine: Engine) -> Response:
    """Go on with an answer that another process makes."""
    listeners: Listeners = request.app.state.listeners
    person: Person = request.state.person
    registry = engine.chat_registry
    if registry is None:
        raise NotFound(CHAT, stream)
    remote_events = await remote_answer(registry, stream, person.id, first)
    await _require_visible(stream, set(remote_events.documents), engine)
    if remote_events.finished and first >= remote_events.count:
        return Response(status_code=204)
    listeners.require_room(person)
    await without_limits(request)
    lease_seconds = float(listeners.settings.lease_seconds)
    answer = RemoteAnswer(registry, stream, person.id, lease_seconds)
    return RemoteAnswerResponse(answer, listeners, first=first)


@openai.post("/chat/completions", response_model=response_type(CompletionAnswer), dependencies=[ReadOnly])
async def complete(
    body: CompletionBody, request: Request, engine: EngineOf, streams: StreamsOf
) -> Response | CompletionAnswer:
    """Ask the chat model in OpenAI's form; its clients need another base URL and nothing else."""
    chat_request = body.request(streams.settings)
    stream = await _begin_stream(chat_request, request, engine, streams, resumable=False)
    name = engine.chat.model or ""
    max_tokens = chat_request.allocation.answer
    completion_request = CompletionRequest(
        f"chatcmpl-{stream.id}", name, max_tokens, body.stops, usage=body.wants_usage
    )
    if body.stream:
        return EventStream(
            stream,
            Chunks(completion_request),
            streams.settings,
            head_after=EVENTS_BEFORE_HEAD,
            refuse=lambda failure: answer_problem(problem_of_failure(failure), request.scope["path"]),
        )
    return await read_completion(stream, completion_request, request.receive)


@openai.post("/embeddings", dependencies=[ReadOnly])
async def embed(body: EmbeddingsBody, request: Request, engine: EngineOf) -> EmbeddingsAnswer:
    """Embed texts with the embedding model of the server, for clients of OpenAI."""
    require_scope(request.state.person, "read", "embed texts")
    embedder = engine.embedder
    with on_behalf_of(request.state.person.id):
        vectors = await body.vectors(embedder)
    data = [EmbeddingAnswer(index=position, embedding=vector) for position, vector in enumerate(vectors)]
    tokens = sum(map(engine.tokenizer(), body.texts))
    usage = EmbeddingUsageAnswer(prompt_tokens=tokens, total_tokens=tokens)
    return EmbeddingsAnswer(data=data, model="" if embedder is None else embedder.space.model, usage=usage)


@openai.get("/models")
async def models(request: Request, engine: EngineOf) -> ModelsAnswer:
    """Return the chat model that is asked, if one is set."""
    require_scope(request.state.person, "read", "list models")
    name = engine.chat.model
    available_models = [] if name is None else [ModelAnswer(id=name, owned_by=name.partition(":")[0])]
    return ModelsAnswer(data=available_models)


async def _begin_stream(
    body: ChatRequest, request: Request, engine: Engine, streams: ChatStreams, *, resumable: bool
) -> ChatStream:
    """Return a new stream once its first event is there; from then on, no limit of other requests holds."""
    state = request.state
    require_scope(state.person, "read", "chat")
    stream = await streams.begin(
        engine.chat.stream(body), person=state.person, request_id=state.request_id, resumable=resumable
    )
    await without_limits(request)
    return stream


def _parse_last_event(last: str | None, stream: str) -> int:
    """Return the number of the event after the last one that was read. Raises InvalidInput."""
    if not last:
        return 0
    name, _, number = last.rpartition(":")
    if name != stream or not (number.isascii() and number.isdecimal()):
        raise InvalidInput("Last-Event-ID", "is not the id of an event of this chat")
    return int(number) + 1


async def _require_visible(stream: str, documents: AbstractSet[str], engine: Engine) -> None:
    """Raise NotFound unless the person may still see all that the answer is made from."""
    for document in documents:
        try:
            await engine.documents.get(document)
        except NotFound:
            raise NotFound(CHAT, stream) from None


router.routes.extend(openai.routes)
