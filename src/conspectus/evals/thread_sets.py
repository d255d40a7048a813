"""Channels whose messages people have sorted into conversations, or linked to what they answer."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.evals.rows import Row, rows
from conspectus.text.replies import Utterance
from conspectus.text.times import parse_instant


@dataclass(frozen=True, slots=True)
class JudgedChannel:
    """The messages of a channel as they were said, and what is known of some of them, by place.

    Attributes:
        threads: the conversation of each judged message.
        answers: what each judged message answers; itself for the start of a conversation. None where the
            set has no links.
    """

    name: str
    said: tuple[Utterance, ...]
    threads: Mapping[int, str]
    answers: Mapping[int, frozenset[int]] | None


def read_judged_channels(directory: Path) -> tuple[JudgedChannel, ...]:
    """Read `messages.jsonl` and, if it is there, `links.jsonl`. Raises InvalidInput naming file and line.

    Messages are in the order of the file, those of a channel with a full `timestamp` each in the order of
    time; a time that cannot be read is left out. `i` numbers the messages of a channel for the links.
    With links the messages that have one are judged, without any all that have a thread.
    """
    told: dict[str, list[Row]] = defaultdict(list)
    for row in rows(directory / "messages.jsonl"):
        told[row.id("channel")].append(row)
    places = {name: _places(each) for name, each in told.items()}
    path = directory / "links.jsonl"
    links = _links(rows(path), places) if path.exists() else None
    channels = tuple(
        _channel(name, _ordered(each), None if links is None else links[name]) for name, each in told.items()
    )
    if not any(channel.threads for channel in channels):
        raise InvalidInput("messages.jsonl", "no message is judged")
    return channels


def successions(threads: Mapping[int, Hashable]) -> dict[int, frozenset[int]]:
    """For each message the last one of its thread before it, itself for the first."""
    last: dict[Hashable, int] = {}
    found = {}
    for place in sorted(threads):
        found[place] = frozenset({last.get(threads[place], place)})
        last[threads[place]] = place
    return found


def _places(told: Sequence[Row]) -> dict[int, int]:
    ordered = {id(row): place for place, row in enumerate(_ordered(told))}
    return {
        row.number("i") if "i" in row.values else number: ordered[id(row)] for number, row in enumerate(told)
    }


def _ordered(told: Sequence[Row]) -> Sequence[Row]:
    instants = [_instant(row.optional("timestamp")) for row in told]
    known = [instant for instant in instants if instant is not None]
    if len(known) < len(told):
        return told
    return [row for _, row in sorted(zip(known, told, strict=True), key=lambda pair: pair[0])]


def _channel(name: str, told: Sequence[Row], links: Mapping[int, frozenset[int]] | None) -> JudgedChannel:
    said = tuple(_utterance(row) for row in told)
    if links is None:
        sorted_out = {place: row.optional("thread") for place, row in enumerate(told)}
        threads = {place: thread for place, thread in sorted_out.items() if thread is not None}
    else:
        threads = {place: told[place].id("thread") for place in sorted(links)}
    return JudgedChannel(name, said, threads, links)


def _utterance(row: Row) -> Utterance:
    date, time = row.optional("date"), row.optional("time")
    printed = None if date is None or time is None else f"{date}T{time}"
    at = _instant(row.optional("timestamp") or printed)
    return Utterance(row.optional("user"), row.text("text"), at, system=row.values.get("system") is True)


def _instant(value: str | None) -> datetime | None:
    try:
        return None if value is None else parse_instant(value)
    except InvalidInput:
        return None


def _links(
    told: Iterable[Row], places: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, frozenset[int]]]:
    links: dict[str, dict[int, frozenset[int]]] = {name: {} for name in places}
    for row in told:
        known = places.get(row.id("channel"), {})
        child, parent = row.number("child"), row.number("parent")
        if child not in known or parent not in known:
            raise InvalidInput(row.place, "links a message that messages.jsonl does not have")
        answered = links[row.id("channel")]
        answered[known[child]] = answered.get(known[child], frozenset()) | {known[parent]}
    return links
