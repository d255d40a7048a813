"""Chats with the model that a server asks."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Final

from conspectus.client.decode import Misread, decode
from conspectus.client.event_stream import ServerEvent, events_in
from conspectus.client.operations import derive_client
from conspectus.client.request import Request, path_of, query_request, to_json
from conspectus.client.transport import RemoteService
from conspectus.engine.chat import ChatService
from conspectus.errors import InvalidInput, NotFound, ServerUnavailable
from conspectus.model.chat import (
    ChatEvent,
    ChatRequest,
    Citations,
    Delta,
    Failure,
    ModelOptions,
    Sources,
    Usage,
)
from conspectus.model.filter_json import filter_to_json
from conspectus.model.records import Json

DONE: Final = "[DONE]"
EVENT_TYPES: Final[Mapping[str, type[ChatEvent]]] = {
    "sources": Sources,
    "delta": Delta,
    "citations": Citations,
    "usage": Usage,
    "error": Failure,
}
ONLY_COMPLETIONS: Final = frozenset({"since", "options"})
"""Fields that only `/chat/completions` accepts."""
TIMES: Final = 3
"""Maximum number of reconnections of one stream."""


@derive_client
class RemoteChat(RemoteService, ChatService):
    """Chat with the model of a server."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        if request.since or request.options != ModelOptions():
            raise InvalidInput("options", "are not supported by /chat of a server; use /chat/completions")
        sent = replace(query_request("/chat", chat_json(request)), once=request.store_in is not None)
        async with aclosing(self._events(sent)) as events:
            async for event in events:
                if (values := self._decode(event)) is not None:
                    yield values

    async def _events(
        self, request: Request, *, last: str = "", attempts: int = TIMES
    ) -> AsyncGenerator[ServerEvent, None]:
        """Yield the events to the end, over several connections if one is lost."""
        try:
            async with aclosing(self._read_connection(request)) as events:
                async for event in events:
                    last = event.id
                    yield event
            return
        except (ServerUnavailable, NotFound) as fault:
            if not last:
                raise
            if not attempts or isinstance(fault, NotFound):
                raise self._channel.make_lost_answer_error("it cannot be resumed") from fault
        path = path_of("chat", ("chat", last.rpartition(":")[0]))
        again = Request("GET", path, headers={"Last-Event-ID": last})
        async with aclosing(self._events(again, last=last, attempts=attempts - 1)) as events:
            async for event in events:
                yield event

    async def _read_connection(self, request: Request) -> AsyncGenerator[ServerEvent, None]:
        """Yield the events of one connection. Raises ServerUnavailable if it is lost."""
        async with aclosing(self._channel.pieces(request)) as pieces:
            async for event in events_in(pieces):
                if (event.name, event.data) == ("message", DONE):
                    return
                yield event
        raise self._channel.make_lost_answer_error("it ended before the last event")

    def _decode(self, event: ServerEvent) -> ChatEvent | None:
        """Return what a server-sent event stands for; None for events of newer servers."""
        if event.name == "message":
            return Delta(event.data)
        kind = EVENT_TYPES.get(event.name)
        if kind is None:
            return None
        try:
            return decode(kind, json.loads(event.data))
        except (Misread, ValueError, RecursionError) as fault:
            raise self._channel.unclear(f"an event {event.name!r:.20} cannot be read") from fault


def chat_json(request: ChatRequest) -> dict[str, Json]:
    """Return a chat as JSON. Raises InvalidInput for numbers that JSON does not have."""
    names = (field.name for field in fields(request) if field.name not in ONLY_COMPLETIONS)
    values = {name: getattr(request, name) for name in names}
    conditions, allocation = filter_to_json(values.pop("filter")), to_json(values.pop("allocation"))
    members = {
        name: to_json(value)
        for name, value in values.items()
        if value is not None or name == "min_similarity"
    }
    return {**members, "filter": conditions, "budget": allocation}
