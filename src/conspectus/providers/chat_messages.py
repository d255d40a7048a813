"""Messages, tools and responses in the types of pydantic-ai."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.model.chat import (
    CachedMessage,
    JsonForm,
    ModelOptions,
    ToolCall,
    Turn,
)
from conspectus.model.results import Message
from conspectus.providers.chat_vendors import library
from conspectus.providers.vendor_api import sendable

_PASSAGE_END: Final = re.compile("</passage>")


ROLES: Final = frozenset({"system", "user", "assistant"})
ANY_OBJECT: Final = {"type": "object", "properties": {}, "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model."""

    messages: Sequence[Message]
    settings: dict[str, Any]
    options: ModelOptions


def sayable(message: Message) -> bool:
    """Return whether the role of a message is supported."""
    answers = isinstance(message, Turn) and message.answers is not None
    return message.role in ROLES or (message.role == "tool" and answers)


def as_sent(messages: Sequence[Message], *, cached: bool = False) -> list[Any]:
    """Return the messages as objects of the library, grouped into requests and responses.

    With `cached`, those that may be cached say up to where.
    """
    words = library("messages")
    sent: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            sent.append(words.ModelResponse(parts=_contents(message)))
            continue
        part = (
            _split_into_blocks(message)
            if cached and isinstance(message, CachedMessage)
            else _request(message)
        )
        if sent and isinstance(sent[-1], words.ModelRequest):
            sent[-1] = words.ModelRequest(parts=[*sent[-1].parts, part])
        else:
            sent.append(words.ModelRequest(parts=[part]))
    return sent


def _contents(message: Message) -> list[Any]:
    words = library("messages")
    calls = message.calls if isinstance(message, Turn) else ()
    has_text = bool(message.content.strip()) or not calls
    texts = [words.TextPart(content=sendable(message.content))] if has_text else []
    return texts + [words.ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in calls]


def _request(message: Message) -> Any:
    words, content = library("messages"), sendable(message.content)
    if isinstance(message, Turn) and message.answers is not None:
        call = message.answers
        return words.ToolReturnPart(tool_name=call.name, content=content, tool_call_id=call.id)
    return {"system": words.SystemPromptPart, "user": words.UserPromptPart}[message.role](content=content)


def _split_into_blocks(message: CachedMessage) -> Any:
    """Return a message in blocks, one for each passage, with a marker after those that may be cached.

    The blocks are the same when other passages follow, so a provider finds again what it cached.
    """
    words, content = library("messages"), message.content
    last = max(message.cached)
    ends = {passage.end() for passage in _PASSAGE_END.finditer(content, 0, last)}
    begins = 0
    parts: list[Any] = []
    for end in sorted({*ends, *message.cached, len(content)}):
        parts.append(sendable(content[begins:end]))
        begins = end
        if end in message.cached:
            parts.append(words.CachePoint())
    return words.UserPromptPart(content=parts)


def parameters_of(options: ModelOptions) -> Any:
    """Return the tools, and the format of the response."""
    definition = library("tools").ToolDefinition
    tools = [
        definition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters) or {"type": "object", "properties": {}},
            strict=bool(tool.strict),
        )
        for tool in options.tools
    ]
    form = {} if options.form is None else _form(options.form)
    return library("models").ModelRequestParameters(function_tools=tools, **form)


def _form(form: JsonForm) -> dict[str, Any]:
    if form.schema is None:
        anything = library("output").OutputObjectDefinition(json_schema=ANY_OBJECT)
        return {"output_mode": "prompted", "output_object": anything}
    named = library("output").OutputObjectDefinition(
        json_schema=dict(form.schema), name=form.name, description=form.description, strict=bool(form.strict)
    )
    return {"output_mode": "native", "output_object": named}


def choice_of(options: ModelOptions) -> dict[str, Any]:
    """Return the setting which tools may or must be called."""
    if not options.tools:
        return {}
    return {"tool_choice": options.choice if options.only is None else [options.only]}


def tool_calls(stream: Any) -> Iterator[ToolCall]:
    """Return the tool calls in a complete response."""
    for part in stream.get().parts:
        if part.part_kind == "tool-call":
            arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
            yield ToolCall(part.tool_call_id, part.tool_name, arguments or "{}")
