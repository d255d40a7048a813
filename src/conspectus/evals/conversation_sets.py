"""Evaluation sets of conversations: of chats with threads, of meetings, or with questions."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.evals.datasets import (
    CitedQuestion,
    ConversationSet,
    Row,
    read_conversation_set,
    rows,
)
from conspectus.model.records import NewDocument
from conspectus.text.times import parse_instant

MIN_WORDS = 5
"""Minimum words of a message. Shorter messages have no content to search for."""
MIN_EARLIER, MAX_EARLIER = 2, 10
"""Fewest and most earlier messages in a thread of the set. More cannot all be among the ten best."""
HALF_A_DAY = timedelta(hours=12)
_START = datetime(1970, 1, 1, tzinfo=UTC)


def read_conversations(directory: Path) -> ConversationSet:
    """Read a set of conversations, of chats with annotated threads, or of meetings, as the files say.

    Raises InvalidInput for a directory without a set, or if a file is not readable.
    """
    if (directory / "questions.jsonl").exists() or not directory.is_dir():
        return read_conversation_set(directory)
    if (directory / "messages.jsonl").exists():
        return read_chat_set(directory)
    if (directory / "corpus.jsonl").exists():
        return read_meeting_set(directory)
    return read_conversation_set(directory)


def read_chat_set(directory: Path) -> ConversationSet:
    """Read `messages.jsonl` with threads, and the replies in `links.jsonl` if it exists.

    Questions of the category `thread` are asked in a channel; the earlier messages of the thread are the
    evidence. Questions of the category `reply` are asked in a thread; the answered message is the evidence.
    Messages without annotation are left out, because the missing thread would identify them. Raises
    InvalidInput with file and line, or if there are no questions.
    """
    channels: dict[str, list[Row]] = {}
    for row in rows(directory / "messages.jsonl"):
        if row.values.get("annotated", True):
            channels.setdefault(row.id("channel"), []).append(row)
    spoken = {name: tuple(_messages(messages)) for name, messages in channels.items()}
    questions = [question for name, messages in spoken.items() for question in _threads(name, messages)]
    if (directory / "links.jsonl").exists():
        answered: dict[tuple[str, int], set[int]] = {}
        for row in rows(directory / "links.jsonl"):
            child, parent = row.number("child"), row.number("parent")
            if parent < child:
                answered.setdefault((row.id("channel"), child), set()).add(parent)
        questions += [
            question for name, messages in spoken.items() for question in _replies(name, messages, answered)
        ]
    if not questions:
        raise InvalidInput("messages.jsonl", "no message is in a thread with earlier ones")
    return ConversationSet(spoken, tuple(questions))


def read_meeting_set(directory: Path) -> ConversationSet:
    """Read `corpus.jsonl` (one turn per row), and `queries.jsonl` with the turns that answer each question.

    A meeting is a conversation with one thread. Only questions about a part of a meeting are used: their
    evidence covers less than a tenth of it. Raises InvalidInput with file and line.
    """
    meetings: dict[str, list[NewDocument]] = {}
    for row in rows(directory / "corpus.jsonl"):
        turns = meetings.setdefault(row.id("meeting"), [])
        turns.append(_turn(row, len(turns)))
    all_questions = [_read_question(row, meetings) for row in rows(directory / "queries.jsonl")]
    questions = tuple(
        question
        for question in all_questions
        if 0 < 10 * len(question.evidence) < len(meetings[question.conversation])
    )
    if not questions:
        raise InvalidInput("queries.jsonl", "no question cites a part of a meeting")
    return ConversationSet({name: tuple(turns) for name, turns in meetings.items()}, questions)


def _messages(messages: Sequence[Row]) -> Iterator[NewDocument]:
    """Return messages in order of time; in file order if they have only clock times of twelve hours."""
    dated = all(row.optional("timestamp") for row in messages)
    ordered = sorted(messages, key=lambda row: parse_instant(row.text("timestamp"))) if dated else messages
    moments = (parse_instant(row.text("timestamp")) for row in ordered) if dated else _clock(ordered)
    for sequence, (row, moment) in enumerate(zip(ordered, moments, strict=True)):
        yield NewDocument(
            key=row.id("id"),
            text=row.text("text"),
            kind="message",
            thread=row.optional("thread"),
            sequence=sequence,
            author=row.optional("user"),
            role="system" if row.values.get("system") else None,
            occurred=moment,
            metadata={"i": row.number("i")} if "i" in row.values else {},
        )


def _clock(messages: Sequence[Row]) -> Iterator[datetime]:
    """Return times in ascending order. A clock that goes back has wrapped or is slightly off."""
    now = _START
    for row in messages:
        time_text = f"{row.optional('date')}T{row.optional('time')}"
        moment = parse_instant(time_text) if row.optional("date") and row.optional("time") else now
        while now - moment > timedelta(hours=1):
            moment += HALF_A_DAY
        now = max(now, moment)
        yield now


def _threads(channel: str, messages: Sequence[NewDocument]) -> Iterator[CitedQuestion]:
    earlier: dict[str, list[str]] = {}
    for message in messages:
        if message.thread is None:
            continue
        before = earlier.setdefault(message.thread, [])
        if MIN_EARLIER <= len(before) <= MAX_EARLIER and _has_content(message):
            yield _make_question(channel, message, before, category="thread")
        before.append(message.key or "")


def _replies(
    channel: str, messages: Sequence[NewDocument], answered: Mapping[tuple[str, int], set[int]]
) -> Iterator[CitedQuestion]:
    keys = {message.metadata["i"]: message.key or "" for message in messages if "i" in message.metadata}
    for message in messages:
        number = message.metadata.get("i")
        parents = answered.get((channel, number), set()) if isinstance(number, int) else set()
        evidence = [keys[parent] for parent in parents if parent in keys]
        if evidence and _has_content(message) and message.thread is not None:
            yield _make_question(channel, message, evidence, category="reply")


def _make_question(
    channel: str, message: NewDocument, evidence: Sequence[str], *, category: str
) -> CitedQuestion:
    return CitedQuestion(
        id=f"{category} {message.key}",
        conversation=channel,
        text=message.text,
        category=category,
        evidence=frozenset(evidence),
        at=message.occurred if isinstance(message.occurred, datetime) else None,
        thread=message.thread if category == "reply" else None,
        before=message.sequence,
    )


def _has_content(message: NewDocument) -> bool:
    return message.role is None and len(message.text.split()) >= MIN_WORDS


def _turn(row: Row, sequence: int) -> NewDocument:
    return NewDocument(
        key=row.id("id"),
        text=row.text("text"),
        kind="message",
        thread=row.id("meeting"),
        sequence=sequence,
        author=row.optional("speaker"),
    )


def _read_question(row: Row, meetings: Mapping[str, Sequence[NewDocument]]) -> CitedQuestion:
    meeting = row.id("meeting")
    if meeting not in meetings:
        raise InvalidInput(row.position, f"corpus.jsonl has no meeting {meeting!r}")
    turns = meetings[meeting]
    cited = {turns[number].key or "" for number in _read_turn_numbers(row) if number < len(turns)}
    return CitedQuestion(row.id("id"), meeting, row.text("text"), "meeting", frozenset(cited))


def _read_turn_numbers(row: Row) -> Iterator[int]:
    for span in row.items("turn_spans"):
        match span:
            case [int(first), int(last)] if 0 <= first <= last:
                yield from range(first, last + 1)
            case _:
                raise InvalidInput(row.position, "'turn_spans' must be pairs of numbers of turns")
