"""Sets in which people have marked names: turns of chats with what is meant, and documents with entities."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.evals.rows import Row, rows

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What somebody said, the spans that people linked with their entities, and own things with theirs."""

    split: str
    conversation: str
    text: str
    links: Mapping[Span, str]
    own: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document as its tokens joined by spaces, the number of the entity of each mention, and its type."""

    text: str
    entities: Mapping[Span, int]
    types: Mapping[Span, str]


def read_chat_turns(directory: Path) -> list[ChatTurn]:
    """Read `turns.jsonl`: all turns in order; only those of the speaker `USER` are judged by people.

    Raises InvalidInput naming file and line.
    """
    return [_turn(row) for row in rows(directory / "turns.jsonl") if row.text("speaker") == "USER"]


def read_named_documents(directory: Path) -> list[NamedDocument]:
    """Read `docs.jsonl`. Raises InvalidInput naming file and line."""
    return [_document(row) for row in rows(directory / "docs.jsonl")]


def _turn(row: Row) -> ChatTurn:
    text = row.text("text")
    links = {}
    for link in _inner(row, "links"):
        start, end = _span(link, "span")
        if not 0 <= start < end <= len(text):
            raise InvalidInput(row.place, "a span lies outside of the text")
        links[start, end] = link.text("entity")
    own = [(each.text("personal_entity_mention"), each.text("entity")) for each in _inner(row, "personal")]
    return ChatTurn(row.optional("split") or "", row.id("conv"), text, links, own)


def _document(row: Row) -> NamedDocument:
    sentences = [str(each).split(" ") for each in row.items("sentences")]
    places, at = [], 0
    for tokens in sentences:
        spans = []
        for token in tokens:
            spans.append((at, at + len(token)))
            at += len(token) + 1
        places.append(spans)
    entities: dict[Span, int] = {}
    types: dict[Span, str] = {}
    for number, entity in enumerate(_inner(row, "entities")):
        for mention in _inner(entity, "mentions"):
            first, last = _span(mention, "tok")
            spans = places[mention.number("sent")] if mention.number("sent") < len(places) else []
            if 0 <= first < last <= len(spans):
                span = (spans[first][0], spans[last - 1][1])
                entities[span], types[span] = number, entity.text("type")
    return NamedDocument(" ".join(" ".join(tokens) for tokens in sentences), entities, types)


def _inner(row: Row, name: str) -> list[Row]:
    found = row.items(name)
    if not all(isinstance(each, dict) for each in found):
        raise InvalidInput(row.place, f"{name!r} must hold objects")
    return [Row(row.place, each) for each in found if isinstance(each, dict)]


def _span(row: Row, name: str) -> Span:
    numbers = row.items(name)
    if len(numbers) != 2 or not all(isinstance(each, int) for each in numbers):
        raise InvalidInput(row.place, f"{name!r} must be two whole numbers")
    return int(str(numbers[0])), int(str(numbers[1]))


def by_conversation(turns: Sequence[ChatTurn]) -> dict[str, list[ChatTurn]]:
    """The turns of each conversation, in order."""
    told: dict[str, list[ChatTurn]] = defaultdict(list)
    for turn in turns:
        told[turn.conversation].append(turn)
    return told
