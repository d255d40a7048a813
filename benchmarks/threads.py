"""Links between messages: their quality on platforms without threads."""

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput
from conspectus.evals.datasets import Row, rows
from conspectus.evals.measures import percent
from conspectus.ports import Progress
from conspectus.text.replies import Linker, Utterance
from conspectus.text.times import parse_instant

Labels = Sequence[Hashable]
Message = TypeVar("Message", bound=Hashable)


class LinkScores(NamedTuple):
    """How many of the links found are true, how many of the true ones were found, and the harmonic mean."""

    precision: float
    recall: float
    f1: float


def link_scores(true: Mapping[Message, Set[Message]], links: Mapping[Message, Set[Message]]) -> LinkScores:
    """Compare what messages answer, for the messages of `true`.

    A start of a conversation is a link to itself and counts (Kummerfeld et al., ACL 2019).
    """
    right = sum(len(answered & links[message]) for message, answered in true.items())
    return _scores(
        right, sum(len(links[message]) for message in true), sum(len(answered) for answered in true.values())
    )


def one_to_one(true: Labels, predicted: Labels) -> float:
    """The share of messages in conversations that are paired so that as many as possible agree.

    Each true conversation is paired with at most one that was found (Elsner and Charniak, ACL 2008).
    """
    overlap = _overlap(true, predicted)
    pairs = best_pairs(overlap)
    return float(sum(overlap[row, column] for row, column in pairs)) / len(true) if len(true) else 0.0


def exact_match(true: Labels, predicted: Labels) -> LinkScores:
    """The conversations of at least two messages that were found exactly (Kummerfeld et al., ACL 2019)."""
    ours, theirs = _conversations(predicted), _conversations(true)
    return _scores(len(ours & theirs), len(ours), len(theirs))


def information_kept(true: Labels, predicted: Labels) -> float:
    """1 minus the variation of information over its bound log(n); 1 for the same conversations."""
    if len(true) < 2:
        return 1.0
    both = _entropy(list(zip(true, predicted, strict=True)))
    return 1 - (2 * both - _entropy(true) - _entropy(predicted)) / math.log(len(true))


def best_pairs(gains: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pair rows with columns, each at most once, so that the sum of the gains is highest.

    The Hungarian method with shortest augmenting paths: rows are added one by one, and each keeps prices
    under which no pair could gain by changing.
    """
    if gains.shape[0] > gains.shape[1]:
        return [(row, column) for column, row in best_pairs(gains.T)]
    rows, columns = gains.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    partner = np.full(columns, -1)
    for row in range(rows):
        _augment(row, -gains.astype(np.float64), (row_price, column_price), partner)
    return [(int(row), column) for column, row in enumerate(partner) if row >= 0]


def _augment(
    row: int,
    costs: NDArray[np.float64],
    prices: tuple[NDArray[np.float64], NDArray[np.float64]],
    partner: NDArray[np.int64],
) -> None:
    """Give one more row a column along the cheapest path of changes."""
    row_price, column_price = prices
    cheapest = np.full(len(partner), math.inf)
    before = np.full(len(partner), -1)
    visited = np.zeros(len(partner), dtype=bool)
    column, at = -1, row
    while True:
        slack = costs[at] - row_price[at] - column_price
        better = ~visited & (slack < cheapest)
        cheapest[better], before[better] = slack[better], column
        column = int(np.where(visited, math.inf, cheapest).argmin())
        step = cheapest[column]
        row_price[partner[visited]] += step
        row_price[row] += step
        column_price[visited] -= step
        cheapest[~visited] -= step
        visited[column] = True
        if partner[column] < 0:
            break
        at = int(partner[column])
    while column >= 0:
        earlier = int(before[column])
        partner[column] = partner[earlier] if earlier >= 0 else row
        column = earlier


def _overlap(true: Labels, predicted: Labels) -> NDArray[np.int64]:
    rows = {label: number for number, label in enumerate(dict.fromkeys(true))}
    columns = {label: number for number, label in enumerate(dict.fromkeys(predicted))}
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for one, other in zip(true, predicted, strict=True):
        counts[rows[one], columns[other]] += 1
    return counts


def _conversations(labels: Labels) -> set[frozenset[int]]:
    members: dict[Hashable, set[int]] = defaultdict(set)
    for position, label in enumerate(labels):
        members[label].add(position)
    return {frozenset(positions) for positions in members.values() if len(positions) > 1}


def _entropy(labels: Labels) -> float:
    total = len(labels)
    return -math.fsum(count / total * math.log(count / total) for count in Counter(labels).values())


def _scores(right: int, predicted: int, true: int) -> LinkScores:
    precision, recall = right / predicted if predicted else 0.0, right / true if true else 0.0
    return LinkScores(precision, recall, 2 * right / (predicted + true) if predicted + true else 0.0)


@dataclass(frozen=True, slots=True)
class JudgedChannel:
    """The messages of a channel as they were said, and what is known of some of them, by place.

    Attributes:
        threads: the conversation of each judged message.
        answers: what each judged message answers; itself for the start of a conversation. None where the
            set has no links.
    """

    name: str
    utterances: tuple[Utterance, ...]
    threads: Mapping[int, str]
    answers: Mapping[int, frozenset[int]] | None


def read_judged_channels(directory: Path) -> tuple[JudgedChannel, ...]:
    """Read `messages.jsonl` and, if it is there, `links.jsonl`. Raises InvalidInput naming file and line.

    Messages are in the order of the file, those of a channel with a full `timestamp` each in the order of
    time; a time that cannot be read is left out. `i` numbers the messages of a channel for the links.
    With links the messages that have one are judged, without any all that have a thread.
    """
    rows_by_channel: dict[str, list[Row]] = defaultdict(list)
    for row in rows(directory / "messages.jsonl"):
        rows_by_channel[row.id("channel")].append(row)
    places = {name: _places(channel_rows) for name, channel_rows in rows_by_channel.items()}
    path = directory / "links.jsonl"
    links = _links(rows(path), places) if path.exists() else None
    channels = tuple(
        _channel(name, _ordered(channel_rows), None if links is None else links[name])
        for name, channel_rows in rows_by_channel.items()
    )
    if not any(channel.threads for channel in channels):
        raise InvalidInput("messages.jsonl", "no message is judged")
    return channels


def successions(threads: Mapping[int, Hashable]) -> dict[int, frozenset[int]]:
    """For each message the last one of its thread before it, itself for the first."""
    last: dict[Hashable, int] = {}
    links = {}
    for position in sorted(threads):
        links[position] = frozenset({last.get(threads[position], position)})
        last[threads[position]] = position
    return links


def _places(channel_rows: Sequence[Row]) -> dict[int, int]:
    ordered = {id(row): position for position, row in enumerate(_ordered(channel_rows))}
    return {
        row.number("i") if "i" in row.values else number: ordered[id(row)]
        for number, row in enumerate(channel_rows)
    }


def _ordered(channel_rows: Sequence[Row]) -> Sequence[Row]:
    instants = [_instant(row.optional("timestamp")) for row in channel_rows]
    dated = [instant for instant in instants if instant is not None]
    if len(dated) < len(channel_rows):
        return channel_rows
    return [row for _, row in sorted(zip(dated, channel_rows, strict=True), key=lambda pair: pair[0])]


def _channel(
    name: str, channel_rows: Sequence[Row], links: Mapping[int, frozenset[int]] | None
) -> JudgedChannel:
    utterances = tuple(_utterance(row) for row in channel_rows)
    if links is None:
        sorted_out = {position: row.optional("thread") for position, row in enumerate(channel_rows)}
        threads = {position: thread for position, thread in sorted_out.items() if thread is not None}
    else:
        threads = {position: channel_rows[position].id("thread") for position in sorted(links)}
    return JudgedChannel(name, utterances, threads, links)


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
    link_rows: Iterable[Row], places: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, frozenset[int]]]:
    links: dict[str, dict[int, frozenset[int]]] = {name: {} for name in places}
    for row in link_rows:
        positions = places.get(row.id("channel"), {})
        child, parent = row.number("child"), row.number("parent")
        if child not in positions or parent not in positions:
            raise InvalidInput(row.position, "links a message that messages.jsonl does not have")
        answered = links[row.id("channel")]
        answered[positions[child]] = answered.get(positions[child], frozenset()) | {positions[parent]}
    return links


Links = Mapping[int, int]
Place = tuple[str, int]


class LinkFigures(TypedDict):
    """Links that were found against true ones, from 0 to 100."""

    precision: float
    recall: float
    f1: float


class ThreadFigures(TypedDict):
    """Links and conversations, from 0 to 100.

    `links` is there if people linked the messages. Where they only sorted them, `links_to_last_of_thread`
    takes the last message of the same thread before it for what each message answers. `last_of_thread` does
    so with the conversations that were found, too.
    """

    links: NotRequired[LinkFigures]
    links_to_last_of_thread: NotRequired[LinkFigures]
    last_of_thread: LinkFigures
    one_to_one: float
    exact_match_f1: float
    information_kept: float


class ThreadsReport(TypedDict):
    """The linker's figures, those of answering the message before, and the linker's by channel."""

    channels: int
    messages: int
    judged: int
    linked: ThreadFigures
    message_before: ThreadFigures
    by_channel: dict[str, ThreadFigures]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged channel, what each of its messages was found to answer, and where each conversation begins."""

    channel: JudgedChannel
    links: Links
    roots: Mapping[int, int]


def threads(directory: str | Path, *, progress: Progress | None = None) -> ThreadsReport:
    """Link the messages of each channel in order and compare. Raises InvalidInput naming file and line."""
    channels = read_judged_channels(Path(directory))
    outcomes = []
    for number, channel in enumerate(channels):
        if progress is not None:
            progress("linking", number, len(channels))
        outcomes.append(outcome(channel, linked(channel.utterances)))
    judged = [one for one in outcomes if one.channel.threads]
    before = [outcome(one.channel, message_before(one.channel.utterances)) for one in judged]
    return ThreadsReport(
        channels=len(channels),
        messages=sum(len(channel.utterances) for channel in channels),
        judged=sum(len(channel.threads) for channel in channels),
        linked=measured(judged),
        message_before=measured(before),
        by_channel={one.channel.name: measured([one]) for one in judged},
    )


def linked(utterances: Sequence[Utterance], linker: Linker | None = None) -> Links:
    """The position of the message that each message answers, its own where it begins a conversation."""
    linker = linker or Linker()
    answered = (linker.link(str(position), utterance) for position, utterance in enumerate(utterances))
    return {
        position: position if answers is None else int(answers) for position, answers in enumerate(answered)
    }


def message_before(utterances: Sequence[Utterance]) -> Links:
    """Every message answers the one before it; system lines answer nothing and are not answered."""
    links: dict[int, int] = {}
    last: int | None = None
    for position, utterance in enumerate(utterances):
        links[position] = position if last is None or utterance.system else last
        last = last if utterance.system else position
    return links


def outcome(channel: JudgedChannel, links: Links) -> Outcome:
    """Follow the links, which lead to earlier messages only, back to the first of each conversation."""
    roots: dict[int, int] = {}
    for position in sorted(links):
        roots[position] = roots.get(links[position], links[position])
    return Outcome(channel, links, roots)


def measured(outcomes: Sequence[Outcome]) -> ThreadFigures:
    """The figures of several channels together."""
    true = [list(one.channel.threads.values()) for one in outcomes]
    ours = [[one.roots[position] for position in one.channel.threads] for one in outcomes]
    agreeing = [one_to_one(*pair) * len(pair[0]) for pair in zip(true, ours, strict=True)]
    true_labels, our_labels = _numbered(true), _numbered(ours)
    succeeding = [{position: one.roots[position] for position in one.channel.threads} for one in outcomes]
    figures = ThreadFigures(
        last_of_thread=_compared(
            outcomes,
            [successions(one.channel.threads) for one in outcomes],
            [successions(labels) for labels in succeeding],
        ),
        one_to_one=round(100 * math.fsum(agreeing) / len(true_labels), 2),
        exact_match_f1=percent([exact_match(true_labels, our_labels).f1]),
        information_kept=percent([information_kept(true_labels, our_labels)]),
    )
    answered = [{position: frozenset({to}) for position, to in one.links.items()} for one in outcomes]
    if all(one.channel.answers is not None for one in outcomes):
        figures["links"] = _compared(outcomes, [one.channel.answers or {} for one in outcomes], answered)
    else:
        derived = [successions(one.channel.threads) for one in outcomes]
        figures["links_to_last_of_thread"] = _compared(outcomes, derived, answered)
    return figures


def _compared(
    outcomes: Sequence[Outcome],
    true: Sequence[Mapping[int, Set[int]]],
    ours: Sequence[Mapping[int, Set[int]]],
) -> LinkFigures:
    names = [one.channel.name for one in outcomes]
    scores = link_scores(_placed(names, true), _placed(names, ours))
    return LinkFigures(
        precision=percent([scores.precision]), recall=percent([scores.recall]), f1=percent([scores.f1])
    )


def _placed(names: Sequence[str], links: Sequence[Mapping[int, Set[int]]]) -> dict[Place, Set[Place]]:
    return {
        (name, position): {(name, to) for to in answered}
        for name, channel_links in zip(names, links, strict=True)
        for position, answered in channel_links.items()
    }


def _numbered(labels: Sequence[Sequence[object]]) -> list[tuple[int, object]]:
    """The labels of all channels, with the channel's number."""
    return [(number, label) for number, channel_labels in enumerate(labels) for label in channel_labels]


def main() -> None:
    """Print the figures of a set as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    print(json.dumps(threads(arguments.directory), indent=2))


if __name__ == "__main__":
    main()
