"""What a chat model is asked, in the words of pydantic-ai."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conspectus.model.chat import JsonForm, ModelOptions, ToolCall, Turn
from conspectus.model.results import Message
from conspectus.providers.chat_vendors import library
from conspectus.providers.vendor_api import sendable

ROLES: Final = frozenset({"system", "user", "assistant"})
ANY_OBJECT: Final = {"type": "object", "properties": {}, "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to a model."""

    messages: Sequence[Message]
    settings: dict[str, Any]
    options: ModelOptions


def sayable(message: Message) -> bool:
    """Whether a message has a role that can be sent."""
    answers = isinstance(message, Turn) and message.answers is not None
    return message.role in ROLES or (message.role == "tool" and answers)


def as_sent(messages: Sequence[Message]) -> list[Any]:
    """The messages in the library's words, those up to an answer in one request."""
    words = library("messages")
    sent: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            sent.append(words.ModelResponse(parts=_said(message)))
            continue
        part = _asked(message)
        if sent and isinstance(sent[-1], words.ModelRequest):
            sent[-1] = words.ModelRequest(parts=[*sent[-1].parts, part])
        else:
            sent.append(words.ModelRequest(parts=[part]))
    return sent


def _said(message: Message) -> list[Any]:
    words, content = library("messages"), sendable(message.content)
    calls = message.calls if isinstance(message, Turn) else ()
    texts = [words.TextPart(content=content)] if content or not calls else []
    return texts + [words.ToolCallPart(each.name, each.arguments, tool_call_id=each.id) for each in calls]


def _asked(message: Message) -> Any:
    words, content = library("messages"), sendable(message.content)
    if isinstance(message, Turn) and message.answers is not None:
        called = message.answers
        return words.ToolReturnPart(tool_name=called.name, content=content, tool_call_id=called.id)
    return {"system": words.SystemPromptPart, "user": words.UserPromptPart}[message.role](content=content)


def parameters_of(options: ModelOptions) -> Any:
    """The tools, and the form of the answer."""
    definition = library("tools").ToolDefinition
    tools = [
        definition(
            name=each.name,
            description=each.description,
            parameters_json_schema=dict(each.parameters) or {"type": "object", "properties": {}},
            strict=bool(each.strict),
        )
        for each in options.tools
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
    """Which tools may or must be called, as a setting."""
    if not options.tools:
        return {}
    return {"tool_choice": options.choice if options.only is None else [options.only]}


def tool_calls(stream: Any) -> Iterator[ToolCall]:
    """The calls of tools in an answer that has come to its end."""
    for part in stream.get().parts:
        if part.part_kind == "tool-call":
            yield ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
