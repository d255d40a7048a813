"""Channels as others might be, made from channels whose messages people linked; every link stays true."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from benchmarks.threads import JudgedChannel
from numpy.typing import NDArray

from conspectus.text.replies import Utterance
from conspectus.text.replies.features import HALF_DAY

SEED = 7
COUNTS = (1, 2, 3)
_THINNED = tuple(f"thinned to {count}" for count in COUNTS)
KINDS = ("as they are", "with seconds", "slower", "without times", *_THINNED, "thinned and changed")
WEIGHTS = (1.0, 0.5, 0.5, 0.3, 0.15, 0.15, 0.15, 0.3)
_LONE = 1 / 2
_SHARE_APART = 0.5
_SLOWEST = 4.5
_PAUSE = (300.0, 260_000.0)
_TEAM = (3, 6)
_NAME = re.compile(r"[^\s:,;@<>]+")

Chance = np.random.Generator
Floats = NDArray[np.float64]
Kind = tuple[float, list[JudgedChannel]]


def origin(name: str) -> str:
    """The channel that a thinned one was made from."""
    return name.partition("~")[0]


def variants(channels: Sequence[JudgedChannel]) -> list[Kind]:
    """The channels as in KINDS, with the weight of each kind."""
    chance = np.random.default_rng(SEED)
    busy = [
        list(channels),
        [_timed(_unaddressed(each, 0.5, chance), 1.0, chance) for each in channels],
        [_slow(_unaddressed(each, 0.3, chance), chance) for each in channels],
        [_timeless(_unaddressed(each, 0.3, chance)) for each in channels],
    ]
    quiet = [[part for each in channels for part in thinned(each, count, chance)] for count in COUNTS]
    others = [
        _apart(part, chance) if chance.random() < _SHARE_APART else _changed(part, chance)
        for parts in quiet
        for part in parts
    ]
    return list(zip(WEIGHTS, [*busy, *quiet, others], strict=True))


def thinned(channel: JudgedChannel, count: int, chance: Chance) -> Iterator[JudgedChannel]:
    """Some conversations that are neighbours in time, and some unanswered messages, without all others."""
    threads = list(_conversations(channel).values())
    answered = [places for places in threads if len(places) > 1]
    for begin in range(0, len(answered) - count + 1, count):
        group = sorted(place for places in answered[begin : begin + count] for place in places)
        lone = (places[0] for places in threads if len(places) == 1)
        meanwhile = [place for place in lone if group[0] < place < group[-1] and chance.random() < _LONE]
        yield _kept(channel, sorted(group + meanwhile), f"{channel.name}~{count}-{begin}")


def _conversations(channel: JudgedChannel) -> Mapping[str, list[int]]:
    """The places of each conversation, the earliest one first."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, thread in sorted(channel.threads.items()):
        if not channel.utterances[place].system:
            found[thread].append(place)
    return found


def _kept(channel: JudgedChannel, places: Sequence[int], name: str) -> JudgedChannel:
    """Some messages, in a new order; one whose answered messages are all gone begins a conversation."""
    now = {place: number for number, place in enumerate(places)}
    answers = channel.answers or {}
    return JudgedChannel(
        name,
        tuple(channel.utterances[place] for place in places),
        {now[place]: channel.threads[place] for place in places},
        {
            number: frozenset(now[to] for to in answers[place] if to in now) or frozenset({number})
            for place, number in now.items()
        },
    )


def _changed(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """With seconds, slower or without times, and with fewer names."""
    channel = _unaddressed(channel, chance.random(), chance)
    kind = chance.integers(3)
    if kind == 0:
        return _timeless(channel)
    return _timed(channel, 1.0, chance) if kind == 1 else _slow(channel, chance)


def _apart(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """The conversations one after another, with pauses, among the same few people."""
    channel = _unaddressed(_as_team(channel, chance), chance.random(), chance)
    clock, order, instants = 0.0, list[int](), list[float]()
    for places in _conversations(channel).values():
        part = [channel.utterances[place] for place in places]
        spread = _spread(part, float(np.exp(chance.uniform(0, _SLOWEST))), chance)
        order += places
        instants += [clock + passed for passed in spread - spread[0]]
        clock = instants[-1] + float(np.exp(chance.uniform(*np.log(_PAUSE))))
    return _at(_kept(channel, order, channel.name), instants)


def _as_team(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """Every conversation among the same few people."""
    everyone = sorted({one.author for one in channel.utterances if one.author})
    team = chance.permutation(everyone)[: chance.integers(*_TEAM, endpoint=True)]
    said = list(channel.utterances)
    for places in _conversations(channel).values():
        authors = sorted({said[place].author or "" for place in places})
        mapped = dict(zip(authors, chance.permutation(team), strict=False))
        names = {name.casefold(): str(mapped.get(name, f"{name}_")) for name in authors}
        for place in places:
            said[place] = _renamed(said[place], names)
    return replace(channel, utterances=tuple(said))


def _renamed(said: Utterance, names: Mapping[str, str]) -> Utterance:
    def other(found: re.Match[str]) -> str:
        return names.get(found[0].casefold(), found[0])

    author = None if said.author is None else names.get(said.author.casefold(), said.author)
    return replace(said, author=author, text=_NAME.sub(other, said.text))


def _unaddressed(channel: JudgedChannel, share: float, chance: Chance) -> JudgedChannel:
    """Without the names at the beginning of a share of the messages."""
    authors = {one.author.casefold() for one in channel.utterances if one.author}
    said = tuple(
        replace(one, text=one.text.split(None, 1)[1])
        if _addresses(one, authors) and chance.random() < share
        else one
        for one in channel.utterances
    )
    return replace(channel, utterances=said)


def _addresses(said: Utterance, authors: set[str]) -> bool:
    pieces = said.text.split(None, 1)
    return len(pieces) == 2 and pieces[0][-1] in ":," and pieces[0][:-1].casefold() in authors


def _timeless(channel: JudgedChannel) -> JudgedChannel:
    return replace(channel, utterances=tuple(replace(one, at=None) for one in channel.utterances))


def _slow(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    return _timed(channel, float(np.exp(chance.uniform(0, _SLOWEST))), chance)


def _timed(channel: JudgedChannel, slower: float, chance: Chance) -> JudgedChannel:
    return _at(channel, list(_spread(channel.utterances, slower, chance)))


def _at(channel: JudgedChannel, instants: Sequence[float]) -> JudgedChannel:
    said = tuple(
        replace(one, at=None if one.at is None else datetime.fromtimestamp(float(instant), UTC))
        for one, instant in zip(channel.utterances, instants, strict=True)
    )
    return replace(channel, utterances=said)


def _spread(said: Sequence[Utterance], slower: float, chance: Chance) -> Floats:
    """Times of whole minutes, spread over each minute in order, and everything slowed."""
    spread = np.array([minute + chance.uniform(0, 60) for minute in _minutes(said)])
    begins = spread.min()
    slowed: Floats = begins + (np.sort(spread) - begins) * slower
    return slowed


def _minutes(said: Sequence[Utterance]) -> Iterator[float]:
    """The seconds of a clock that never goes back, also where the one that was shown has twelve hours."""
    now, shown = 0.0, None
    for one in said:
        if one.at is not None:
            then, shown = shown, one.at.timestamp()
            passed = 0.0 if then is None else shown - then
            now = shown if then is None else now + max(passed % HALF_DAY if passed < -600 else passed, 0.0)
        yield now
