"""Chat responses in the format of the OpenAI API."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive

from conspectus.model.chat import ChatEvent, Citations, Delta, Failure, Sources, ToolCall, Usage
from conspectus.web.chat_stream import LEFT, ChatStream
from conspectus.web.problem_details import Refused, failed, openai_error
from conspectus.web.schemas.chat import ChatAnswer, CitationsAnswer, SourcesAnswer
from conspectus.web.schemas.openai_chat import CompletionAnswer, CompletionUsageAnswer
from conspectus.web.sse import DONE, frame


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """The id of a response, its maximum tokens, its stop strings, and whether to send its usage."""

    id: str
    model: str
    max_tokens: int
    stops: Sequence[str]
    usage: bool


class Until:
    """Text up to the first complete stop string. Text that may start one is held back.

    The result does not depend on how the text is split into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.found = False
        self._stops = stops
        self._held = ""

    def passed(self, text: str) -> str:
        """Add text, and return the part that can be sent."""
        self._held += text
        found = [(place + len(stop), place) for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if found:
            self.found = True
            return self._said(min(found)[1])
        return self._said(len(self._held) - self._begun())

    def rest(self) -> str:
        """Return the text that was held back, at the end."""
        return "" if self.found else self._said(len(self._held))

    def _begun(self) -> int:
        """Return how many characters at the end may start a stop string."""
        longest = min(len(self._held), max(map(len, self._stops), default=1) - 1)
        ends = (self._held[-size:] for size in range(longest, 0, -1))
        return next((len(end) for end in ends if any(stop.startswith(end) for stop in self._stops)), 0)

    def _said(self, size: int) -> str:
        said, self._held = self._held[:size], self._held[size:]
        return said


class CompletionState:
    """The state of a response."""

    def __init__(self, request: CompletionRequest) -> None:
        self.sources = Sources("off")
        self.citations = Citations(())
        self.failure: Failure | None = None
        self.calls: list[ToolCall] = []
        self.until = Until(request.stops)
        self._wanted = request
        self._usage: Usage | None = None

    def take(self, event: ChatEvent) -> str:
        """Process an event, and return the text that it adds to the response."""
        match event:
            case Delta() if not self.until.found:
                return self.until.passed(event.text)
            case Sources():
                self.sources = event
            case ToolCall() if not self.until.found:
                self.calls.append(event)
            case Citations():
                self.citations = event
            case Usage():
                self._usage = event
            case Failure():
                self.failure = event
        return ""

    @property
    def finish_reason(self) -> str:
        """The finish reason in the OpenAI API."""
        if self.calls:
            return "tool_calls"
        full = self._usage is not None and self._usage.output >= self._wanted.max_tokens
        return "length" if full and not self.until.found else "stop"

    @property
    def usage(self) -> CompletionUsageAnswer | None:
        """The token usage, if the response is complete."""
        used = self._usage
        if used is None:
            return None
        return CompletionUsageAnswer(
            prompt_tokens=used.input, completion_tokens=used.output, total_tokens=used.input + used.output
        )


class Chunks:
    """A streamed response, chunk by chunk; the first one has the sources."""

    def __init__(self, request: CompletionRequest) -> None:
        self.headers: Mapping[str, str] = {}
        self._wanted = request
        self._state = CompletionState(request)
        self._created = int(time.time())

    @property
    def complete(self) -> bool:
        """Whether a stop string occurred."""
        return self._state.until.found

    def event(self, number: int, event: ChatEvent) -> bytes:
        """Return the chunk to send at once; the rest is sent at the end."""
        text = self._state.take(event)
        match event:
            case Sources():
                given = SourcesAnswer.model_validate(event).model_dump()
                return self._chunk({"role": "assistant", "content": ""}, conspectus=given)
            case ToolCall() if event in self._state.calls:
                place = len(self._state.calls) - 1
                return self._chunk({"tool_calls": [{"index": place, **called(event)}]})
            case Failure():
                return frame(json.dumps(openai_error(failed(event))))
        return self._chunk({"content": text}) if text else b""

    def end(self, number: int) -> bytes:
        """Return the last chunks, and the end marker."""
        if self._state.failure is not None:
            return frame(DONE)
        rest = self._state.until.rest()
        cited = CitationsAnswer.model_validate(self._state.citations).model_dump()
        pieces = [self._chunk({"content": rest}) if rest else b""]
        pieces.append(self._chunk({}, finish_reason=self._state.finish_reason, conspectus=cited))
        if self._wanted.usage:
            used = self._state.usage
            pieces.append(self._head(choices=[], usage=None if used is None else used.model_dump()))
        return b"".join([*pieces, frame(DONE)])

    def _chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._wanted.usage else {}
        return self._head(choices=[choice], **usage, **more)

    def _head(self, **more: Any) -> bytes:
        named = {"id": self._wanted.id, "object": "chat.completion.chunk", "created": self._created}
        return frame(json.dumps({**named, "model": self._wanted.model, **more}))


async def completion(stream: ChatStream, request: CompletionRequest, receive: Receive) -> CompletionAnswer:
    """Return the complete response. Raises Refused if there is none."""
    state = CompletionState(request)
    said: list[str] = []
    async with stream.read_by(receive) as reader:
        while not state.until.found and (events := await reader.more()):
            said.extend(map(state.take, events))
    failure = LEFT if reader.gone else state.failure
    if failure is not None:
        raise Refused(failed(failure))
    said.append(state.until.rest())
    given = SourcesAnswer.model_validate(state.sources).model_dump()
    cited = CitationsAnswer.model_validate(state.citations).model_dump()
    text, calls = text_of(map(Delta, said)), [called(each) for each in state.calls]
    message = {"content": None if calls and not text else text, "tool_calls": calls or None}
    return CompletionAnswer.model_validate(
        {
            "id": request.id,
            "created": int(time.time()),
            "model": request.model,
            "choices": [{"message": message, "finish_reason": state.finish_reason}],
            "usage": state.usage,
            "conspectus": {**given, **cited},
        }
    )


def called(call: ToolCall) -> dict[str, Any]:
    """Return a tool call in the format of the OpenAI API."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def text_of(events: Iterable[ChatEvent]) -> str:
    """Join the text; surrogate pairs that were split are joined."""
    text = "".join(event.text for event in events if isinstance(event, Delta))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def whole(stream: ChatStream, receive: Receive) -> ChatAnswer:
    """Return the response with all of its events. Raises Refused if it is not complete."""
    async with stream.read_by(receive) as reader:
        events = await reader.rest()
    by_type = {type(event): event for event in events}
    failure = by_type.get(Failure)
    if isinstance(failure, Failure) and Usage not in by_type:
        raise Refused(failed(failure))
    return ChatAnswer.model_validate(
        {
            "answer": text_of(events),
            "sources": by_type.get(Sources, Sources("off")),
            "citations": by_type.get(Citations, Citations(())),
            "usage": by_type.get(Usage),
            "failure": failure,
        },
        from_attributes=True,
    )
