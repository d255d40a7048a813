"""Answers of the chat as clients of OpenAI read them."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.types import Receive

from conspectus.deferred import dataclass
from conspectus.errors import ChatFiltered
from conspectus.model.chat import ChatEvent, Citations, Delta, Failure, Sources, ToolCall, Usage
from conspectus.web.chat_bodies import ChatAnswer
from conspectus.web.chat_stream import LEFT, ChatStream
from conspectus.web.operation_schemas import answer_of
from conspectus.web.problem_details import Refused, openai_error, problem_of_failure
from conspectus.web.schemas.openai_chat import (
    ChoiceAnswer,
    CompletionAnswer,
    CompletionUsageAnswer,
    add_citations,
)
from conspectus.web.sse import DONE, frame


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """The id of an answer, its most tokens, its stops, and whether to send its usage."""

    id: str
    model: str
    max_tokens: int
    stops: Sequence[str]
    usage: bool


class Until:
    """Text up to the stop string that is complete first; text that may begin one is held back.

    The result does not depend on how the text is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.found = False
        self._stops = stops
        self._unsent = ""

    def release_text(self, text: str) -> str:
        """Return the text that can be sent after some more text arrived."""
        self._unsent += text
        starts = [(stop, self._unsent.find(stop)) for stop in self._stops]
        occurrences = [(start + len(stop), start) for stop, start in starts if start >= 0]
        if occurrences:
            self.found = True
            return self._release(min(occurrences)[1])
        return self._release(len(self._unsent) - self._count_held_back())

    def flush(self) -> str:
        """Return the text that was held back, at the end."""
        return "" if self.found else self._release(len(self._unsent))

    def _count_held_back(self) -> int:
        """Return how many characters of the end may be the beginning of a stop sequence."""
        longest = min(len(self._unsent), max(map(len, self._stops), default=1) - 1)
        ends = (self._unsent[-size:] for size in range(longest, 0, -1))
        return next((len(end) for end in ends if any(stop.startswith(end) for stop in self._stops)), 0)

    def _release(self, size: int) -> str:
        released, self._unsent = self._unsent[:size], self._unsent[size:]
        return released


class CompletionState:
    """The state of an answer so far."""

    def __init__(self, request: CompletionRequest) -> None:
        self.sources = Sources("off")
        self.citations = Citations(())
        self.failure: Failure | None = None
        self.has_text = False
        self.calls: list[ToolCall] = []
        self.until = Until(request.stops)
        self._request = request
        self._usage: Usage | None = None

    def take(self, event: ChatEvent) -> str:
        """Process an event, and return the text that it adds to the answer."""
        match event:
            case Delta() if not self.until.found:
                self.has_text = True
                return self.until.release_text(event.text)
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
        """Why the answer ended: as the model said, if it did."""
        if self.is_filtered:
            return "content_filter"
        finish = None if self._usage is None or self.until.found else self._usage.finish
        if finish == "length" or self._is_full:
            return "length"
        return "tool_calls" if self.calls else "stop"

    @property
    def is_filtered(self) -> bool:
        """Whether a content filter ended the answer, of which clients get what came before."""
        return self.has_text and self.failure is not None and self.failure.code == ChatFiltered.code

    @property
    def _is_full(self) -> bool:
        """Whether an answer of a model that does not say why it ended has all tokens that it could have."""
        used = self._usage
        if used is None or used.finish is not None or self.until.found or self.calls:
            return False
        return used.output >= self._request.max_tokens

    @property
    def usage(self) -> CompletionUsageAnswer | None:
        """The tokens, if the answer came to its own end."""
        used = self._usage
        if used is None:
            return None
        return CompletionUsageAnswer(
            prompt_tokens=used.input, completion_tokens=used.output, total_tokens=used.input + used.output
        )


class Chunks:
    """A streamed answer, chunk by chunk; the first one has what the model is given."""

    def __init__(self, request: CompletionRequest) -> None:
        self.headers: Mapping[str, str] = {}
        self._request = request
        self._state = CompletionState(request)
        self._created = int(time.time())

    @property
    def complete(self) -> bool:
        """Whether one of the stops occurred."""
        return self._state.until.found

    def event(self, number: int, event: ChatEvent) -> bytes:
        """Return the chunk of an event that is sent at once; the other events are sent at the end."""
        text = self._state.take(event)
        match event:
            case Sources():
                sources = answer_of(event).model_dump()
                return self._chunk({"role": "assistant", "content": ""}, conspectus=sources)
            case ToolCall() if event in self._state.calls:
                call_index = len(self._state.calls) - 1
                return self._chunk({"tool_calls": [{"index": call_index, **encode_call(event)}]})
            case Failure() if not self._state.is_filtered:
                return frame(json.dumps(openai_error(problem_of_failure(event))))
        return self._chunk({"content": text}) if text else b""

    def end(self, number: int) -> bytes:
        """Return the last chunks, and the mark of the end."""
        if self._state.failure is not None and not self._state.is_filtered:
            return frame(DONE)
        rest = self._state.until.flush()
        cited = answer_of(self._state.citations).model_dump()
        pieces = [self._chunk({"content": rest}) if rest else b""]
        pieces.append(self._chunk({}, finish_reason=self._state.finish_reason, conspectus=cited))
        if self._request.usage:
            used = self._state.usage
            pieces.append(self._head(choices=[], usage=None if used is None else used.model_dump()))
        return b"".join([*pieces, frame(DONE)])

    def _chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._request.usage else {}
        return self._head(choices=[choice], **usage, **more)

    def _head(self, **more: Any) -> bytes:
        named = {"id": self._request.id, "object": "chat.completion.chunk", "created": self._created}
        return frame(json.dumps({**named, "model": self._request.model, **more}))


async def read_completion(
    stream: ChatStream, request: CompletionRequest, receive: Receive
) -> CompletionAnswer:
    """Return the whole answer. Raises Refused where there is none."""
    state = CompletionState(request)
    texts: list[str] = []
    async with stream.read_by(receive) as reader:
        while not state.until.found and (events := await reader.more()):
            texts.extend(map(state.take, events))
    failure = LEFT if reader.gone else state.failure
    if failure is not None and (reader.gone or not state.is_filtered):
        raise Refused(problem_of_failure(failure))
    texts.append(state.until.flush())
    text, calls = join_text(map(Delta, texts)), [encode_call(call) for call in state.calls]
    message = {"content": None if calls and not text else text, "tool_calls": calls or None}
    choice = {"message": message, "finish_reason": state.finish_reason}
    return CompletionAnswer(
        id=request.id,
        created=int(time.time()),
        model=request.model,
        choices=[ChoiceAnswer.model_validate(choice)],
        usage=state.usage,
        conspectus=add_citations(state.sources, state.citations),
    )


def encode_call(call: ToolCall) -> dict[str, Any]:
    """Return a call of a tool in OpenAI's form."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def join_text(events: Iterable[ChatEvent]) -> str:
    """Return the whole text; halves of surrogate pairs that came apart are put together."""
    text = "".join(event.text for event in events if isinstance(event, Delta))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def read_answer(stream: ChatStream, receive: Receive) -> ChatAnswer:
    """Return the answer once all of its events are there. Raises Refused if it is not complete."""
    async with stream.read_by(receive) as reader:
        events = await reader.read_rest()
    by_type: dict[Any, Any] = {type(event): event for event in events}
    failure = by_type.get(Failure)
    if failure is not None and Usage not in by_type:
        raise Refused(problem_of_failure(failure))
    return ChatAnswer(
        join_text(events),
        by_type.get(Sources, Sources("off")),
        by_type.get(Citations, Citations(())),
        by_type.get(Usage),
        failure,
    )
