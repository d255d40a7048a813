"""Talk of several people as evaluation sets: chats with threads made by hand, and meetings.

A chat has no questions, so its messages are asked with themselves: what somebody writes is the question, at
its time and in its channel, with everything that was said before as the store. Evidence is what people who
read the whole channel put together with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.evals.datasets import CitedQuestion, ConversationSet
from conspectus.evals.rows import Row, rows
from conspectus.model.records import NewDocument
from conspectus.text.times import parse_instant

FEWEST_WORDS = 5
"""Shorter messages say nothing that could be looked for."""
FEWEST, MOST = 2, 10
"""How many earlier messages a thread has that is asked for; more cannot all be among the ten best."""
HALF_A_DAY = timedelta(hours=12)
_START = datetime(1970, 1, 1, tzinfo=UTC)


def read_chat_set(directory: Path) -> ConversationSet:
    """Read `messages.jsonl` with threads, and `links.jsonl` (what answers what) where it is there.

    Questions of the category `thread` are asked in a channel; the earlier messages of the thread are the
    evidence. Those of the category `reply` are asked in a thread, and what the message answers is the
    evidence. Messages that nobody annotated are left out: having no thread would give them away. Raises
    InvalidInput naming file and line, or where there is nothing to ask.
    """
    channels: dict[str, list[Row]] = {}
    for row in rows(directory / "messages.jsonl"):
        if row.values.get("annotated", True):
            channels.setdefault(row.id("channel"), []).append(row)
    spoken = {name: tuple(_messages(said)) for name, said in channels.items()}
    questions = [each for name, said in spoken.items() for each in _threads(name, said)]
    if (directory / "links.jsonl").exists():
        answered = _answered(directory / "links.jsonl")
        questions += [each for name, said in spoken.items() for each in _replies(name, said, answered)]
    if not questions:
        raise InvalidInput("messages.jsonl", "no message stands in a thread with earlier ones")
    return ConversationSet(spoken, tuple(questions))


def read_meeting_set(directory: Path) -> ConversationSet:
    """Read `corpus.jsonl` (one turn a row) and `queries.jsonl` with the spans of turns that answer.

    A meeting is a conversation of one thread. Only questions about a part of a meeting are asked: those
    whose spans cover less than a tenth of it. Raises InvalidInput naming file and line.
    """
    meetings: dict[str, list[NewDocument]] = {}
    for row in rows(directory / "corpus.jsonl"):
        turns = meetings.setdefault(row.id("meeting"), [])
        turns.append(_turn(row, len(turns)))
    asked = [_question(row, meetings) for row in rows(directory / "queries.jsonl")]
    questions = tuple(
        each for each in asked if 0 < 10 * len(each.evidence) < len(meetings[each.conversation])
    )
    if not questions:
        raise InvalidInput("queries.jsonl", "no question cites a part of a meeting")
    return ConversationSet({name: tuple(turns) for name, turns in meetings.items()}, questions)


def _messages(said: Sequence[Row]) -> Iterator[NewDocument]:
    """In order of time; where only a clock is shown, which starts anew every twelve hours, as given."""
    dated = all(row.optional("timestamp") for row in said)
    ordered = sorted(said, key=lambda row: parse_instant(row.text("timestamp"))) if dated else said
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


def _clock(said: Sequence[Row]) -> Iterator[datetime]:
    """Times that never go back: a clock that does has begun anew, or is a little off."""
    now = _START
    for row in said:
        shown = f"{row.optional('date')}T{row.optional('time')}"
        moment = parse_instant(shown) if row.optional("date") and row.optional("time") else now
        while now - moment > timedelta(hours=1):
            moment += HALF_A_DAY
        now = max(now, moment)
        yield now


def _threads(channel: str, said: Sequence[NewDocument]) -> Iterator[CitedQuestion]:
    earlier: dict[str, list[str]] = {}
    for message in said:
        if message.thread is None:
            continue
        before = earlier.setdefault(message.thread, [])
        if FEWEST <= len(before) <= MOST and _says_something(message):
            yield _asked(channel, message, before, category="thread")
        before.append(message.key or "")


def _replies(
    channel: str, said: Sequence[NewDocument], answered: Mapping[tuple[str, int], set[int]]
) -> Iterator[CitedQuestion]:
    keys = {message.metadata["i"]: message.key or "" for message in said if "i" in message.metadata}
    for message in said:
        number = message.metadata.get("i")
        parents = answered.get((channel, number), set()) if isinstance(number, int) else set()
        evidence = [keys[each] for each in parents if each in keys]
        if evidence and _says_something(message) and message.thread is not None:
            yield _asked(channel, message, evidence, category="reply")


def _asked(channel: str, message: NewDocument, evidence: Sequence[str], *, category: str) -> CitedQuestion:
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


def _says_something(message: NewDocument) -> bool:
    return message.role is None and len(message.text.split()) >= FEWEST_WORDS


def _answered(path: Path) -> dict[tuple[str, int], set[int]]:
    """What each message answers, by channel and number; a message that begins a conversation answers none."""
    found: dict[tuple[str, int], set[int]] = {}
    for row in rows(path):
        child, parent = row.number("child"), row.number("parent")
        if parent < child:
            found.setdefault((row.id("channel"), child), set()).add(parent)
    return found


def _turn(row: Row, sequence: int) -> NewDocument:
    return NewDocument(
        key=row.id("id"),
        text=row.text("text"),
        kind="message",
        thread=row.id("meeting"),
        sequence=sequence,
        author=row.optional("speaker"),
    )


def _question(row: Row, meetings: Mapping[str, Sequence[NewDocument]]) -> CitedQuestion:
    meeting = row.id("meeting")
    if meeting not in meetings:
        raise InvalidInput(row.place, f"corpus.jsonl has no meeting {meeting!r}")
    turns = meetings[meeting]
    cited = {turns[place].key or "" for place in _places(row) if place < len(turns)}
    return CitedQuestion(row.id("id"), meeting, row.text("text"), "meeting", frozenset(cited))


def _places(row: Row) -> Iterator[int]:
    for span in row.items("turn_spans"):
        match span:
            case [int(first), int(last)] if 0 <= first <= last:
                yield from range(first, last + 1)
            case _:
                raise InvalidInput(row.place, "'turn_spans' must be pairs of numbers of turns")
