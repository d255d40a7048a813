"""How pieces of an answer are framed: what a parser by the book gives back is the text, byte for byte."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conspectus.model.chat import ChatEvent, Citations, Delta, Failure, Sources, Usage
from conspectus.web.sse import DONE, Frames
from tests.server_events import Event, parsed

AWKWARD = [
    "\r",
    "\n",
    "\r\n",
    "[DONE]",
    "data: x",
    ": x",
    " ",
    "\ud83d",
    "\u2028",
    "\x85",
    "\0",
    "\ufeff",
    "😀",
]


def frame_events(*events: ChatEvent) -> list[Event]:
    frames = Frames("s")
    sent = [frames.event(number, event) for number, event in enumerate(events)]
    return parsed([*sent, frames.end(len(events))])


def text_of(event: Event) -> str:
    assert event.name in {"message", "delta"}
    text: str = event.data if event.name == "message" else json.loads(event.data)["text"]
    return text


@given(st.lists(st.text(st.characters()) | st.lists(st.sampled_from(AWKWARD)).map("".join), max_size=5))
@example(["a\n", "\n", "\n\n", "\nb", " a ", "\ra", "a\r\nb", "[DONE]", "\ud83d", "\ude00", ""])
def test_every_text_arrives_as_it_is(texts: list[str]) -> None:
    *events, end = frame_events(*map(Delta, texts))
    assert [text_of(event) for event in events] == [text for text in texts if text]
    assert (end.name, end.data) == ("message", DONE)


def test_plain_text_is_plain() -> None:
    frames = Frames("s")
    assert frames.event(3, Delta("Hello")) == b"id: s:3\ndata: Hello\n\n"
    assert frames.event(4, Delta(" world\n")) == b"id: s:4\ndata:  world\ndata: \n\n"
    assert frames.end(5) == b"id: s:5\ndata: [DONE]\n\n"


@pytest.mark.parametrize("text", ["[DONE]", "a\rb", "\ud800"])
def test_what_would_not_arrive_goes_as_json(text: str) -> None:
    [event, _] = frame_events(Delta(text))
    assert (event.name, json.loads(event.data)) == ("delta", {"text": text})


def test_a_text_that_is_the_mark_of_the_end_is_not_the_end() -> None:
    events = frame_events(Delta("[DONE]"), Delta("[DO"), Delta("NE]"), Delta("[DONE] "))
    assert [(event.name, event.data) for event in events].count(("message", DONE)) == 1
    assert (events[-1].name, events[-1].data) == ("message", DONE)


def test_the_other_events_are_named_and_in_json() -> None:
    events = [
        Sources("failed", question="a\r\nb", notice="\u2028"),
        Citations((), ("9",)),
        Usage(3, 4, exact=False, finish="length"),
        Failure("LLM_TIMEOUT", "too long"),
    ]
    sources, citations, usage, failure, _ = frame_events(*events)
    assert [event.name for event in (sources, citations, usage, failure)] == [
        "sources", "citations", "usage", "error",
    ]  # fmt: skip
    assert json.loads(sources.data) == {
        "outcome": "failed", "sources": [], "question": "a\r\nb", "tokens": 0, "notice": "\u2028",
        "stable_tokens": 0,
    }  # fmt: skip
    assert json.loads(citations.data) == {"cited": [], "unknown": ["9"], "answer": ""}
    assert json.loads(usage.data) == {"input": 3, "output": 4, "exact": False, "finish": "length"}
    assert json.loads(failure.data) == {"code": "LLM_TIMEOUT", "message": "too long"}


def test_every_event_has_an_id() -> None:
    events = frame_events(Sources("off"), Delta("a"), Delta("[DONE]"), Usage(1, 1))
    assert [event.id for event in events] == ["s:0", "s:1", "s:2", "s:3", "s:4"]
