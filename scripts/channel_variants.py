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
KIND_WEIGHTS = (1.0, 0.5, 0.5, 0.3, 0.15, 0.15, 0.15, 0.3)
_UNANSWERED_SHARE = 1 / 2
_SEQUENTIAL_SHARE = 0.5
_MAX_LOG_SLOWDOWN = 4.5
_PAUSE_SECONDS = (300.0, 260_000.0)
_TEAM_SIZES = (3, 6)
_NAME = re.compile(r"[^\s:,;@<>]+")

Chance = np.random.Generator
Floats = NDArray[np.float64]
Kind = tuple[float, list[JudgedChannel]]


def origin_of(name: str) -> str:
    """Return the channel that a thinned one was made from."""
    return name.partition("~")[0]


def make_variants(channels: Sequence[JudgedChannel]) -> list[Kind]:
    """Return the channels as in KINDS, with the weight of each kind."""
    chance = np.random.default_rng(SEED)
    full_channels = [
        list(channels),
        [_with_seconds(_remove_names(channel, 0.5, chance), 1.0, chance) for channel in channels],
        [_slow_down(_remove_names(channel, 0.3, chance), chance) for channel in channels],
        [_remove_times(_remove_names(channel, 0.3, chance)) for channel in channels],
    ]
    thin_channels = [
        [conversation for channel in channels for conversation in thin_channel(channel, count, chance)]
        for count in COUNTS
    ]
    varied = [
        _separate_conversations(conversation, chance)
        if chance.random() < _SEQUENTIAL_SHARE
        else _vary(conversation, chance)
        for conversations in thin_channels
        for conversation in conversations
    ]
    return list(zip(KIND_WEIGHTS, [*full_channels, *thin_channels, varied], strict=True))


def thin_channel(channel: JudgedChannel, count: int, chance: Chance) -> Iterator[JudgedChannel]:
    """Yield channels of some neighbouring conversations and some unanswered messages."""
    threads = list(_conversations(channel).values())
    answered = [positions for positions in threads if len(positions) > 1]
    for start in range(0, len(answered) - count + 1, count):
        group = sorted(position for positions in answered[start : start + count] for position in positions)
        unanswered = (positions[0] for positions in threads if len(positions) == 1)
        interjections = [
            position
            for position in unanswered
            if group[0] < position < group[-1] and chance.random() < _UNANSWERED_SHARE
        ]
        yield _select_messages(channel, sorted(group + interjections), f"{channel.name}~{count}-{start}")


def _conversations(channel: JudgedChannel) -> Mapping[str, list[int]]:
    """Return the positions of the messages of each conversation, the earliest one first."""
    positions: dict[str, list[int]] = defaultdict(list)
    for position, thread in sorted(channel.threads.items()):
        if not channel.utterances[position].system:
            positions[thread].append(position)
    return positions


def _select_messages(channel: JudgedChannel, positions: Sequence[int], name: str) -> JudgedChannel:
    """Return some messages in a new order; without its answered messages, one begins a conversation."""
    new_positions = {position: number for number, position in enumerate(positions)}
    answers = channel.answers or {}
    return JudgedChannel(
        name,
        tuple(channel.utterances[position] for position in positions),
        {new_positions[position]: channel.threads[position] for position in positions},
        {
            number: frozenset(
                new_positions[answered] for answered in answers[position] if answered in new_positions
            )
            or frozenset({number})
            for position, number in new_positions.items()
        },
    )


def _vary(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """Add seconds, slow the channel down or remove its times; remove some names."""
    channel = _remove_names(channel, chance.random(), chance)
    kind = chance.integers(3)
    if kind == 0:
        return _remove_times(channel)
    return _with_seconds(channel, 1.0, chance) if kind == 1 else _slow_down(channel, chance)


def _separate_conversations(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """Put conversations one after another, with pauses, among the same few people."""
    channel = _remove_names(_as_team(channel, chance), chance.random(), chance)
    clock, positions_in_order, instants = 0.0, list[int](), list[float]()
    for positions in _conversations(channel).values():
        utterances = [channel.utterances[position] for position in positions]
        seconds = _spread_times(utterances, float(np.exp(chance.uniform(0, _MAX_LOG_SLOWDOWN))), chance)
        positions_in_order += positions
        instants += [clock + second for second in seconds - seconds[0]]
        clock = instants[-1] + float(np.exp(chance.uniform(*np.log(_PAUSE_SECONDS))))
    return _with_times(_select_messages(channel, positions_in_order, channel.name), instants)


def _as_team(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    """Give every conversation the same few people."""
    everyone = sorted({utterance.author for utterance in channel.utterances if utterance.author})
    team = chance.permutation(everyone)[: chance.integers(*_TEAM_SIZES, endpoint=True)]
    utterances = list(channel.utterances)
    for positions in _conversations(channel).values():
        authors = sorted({utterances[position].author or "" for position in positions})
        members = dict(zip(authors, chance.permutation(team), strict=False))
        names = {name.casefold(): str(members.get(name, f"{name}_")) for name in authors}
        for position in positions:
            utterances[position] = _rename_people(utterances[position], names)
    return replace(channel, utterances=tuple(utterances))


def _rename_people(utterance: Utterance, names: Mapping[str, str]) -> Utterance:
    def new_name(match: re.Match[str]) -> str:
        return names.get(match[0].casefold(), match[0])

    author = None if utterance.author is None else names.get(utterance.author.casefold(), utterance.author)
    return replace(utterance, author=author, text=_NAME.sub(new_name, utterance.text))


def _remove_names(channel: JudgedChannel, share: float, chance: Chance) -> JudgedChannel:
    """Remove the names at the beginning of a share of the messages."""
    authors = {utterance.author.casefold() for utterance in channel.utterances if utterance.author}
    utterances = tuple(
        replace(utterance, text=utterance.text.split(None, 1)[1])
        if _begins_with_name(utterance, authors) and chance.random() < share
        else utterance
        for utterance in channel.utterances
    )
    return replace(channel, utterances=utterances)


def _begins_with_name(utterance: Utterance, authors: set[str]) -> bool:
    words = utterance.text.split(None, 1)
    return len(words) == 2 and words[0][-1] in ":," and words[0][:-1].casefold() in authors


def _remove_times(channel: JudgedChannel) -> JudgedChannel:
    return replace(channel, utterances=tuple(replace(utterance, at=None) for utterance in channel.utterances))


def _slow_down(channel: JudgedChannel, chance: Chance) -> JudgedChannel:
    return _with_seconds(channel, float(np.exp(chance.uniform(0, _MAX_LOG_SLOWDOWN))), chance)


def _with_seconds(channel: JudgedChannel, slowdown: float, chance: Chance) -> JudgedChannel:
    return _with_times(channel, list(_spread_times(channel.utterances, slowdown, chance)))


def _with_times(channel: JudgedChannel, instants: Sequence[float]) -> JudgedChannel:
    utterances = tuple(
        replace(utterance, at=None if utterance.at is None else datetime.fromtimestamp(float(instant), UTC))
        for utterance, instant in zip(channel.utterances, instants, strict=True)
    )
    return replace(channel, utterances=utterances)


def _spread_times(utterances: Sequence[Utterance], slowdown: float, chance: Chance) -> Floats:
    """Return times of whole minutes spread over each minute in order, and slowed down."""
    seconds = np.array([minute + chance.uniform(0, 60) for minute in _clock_seconds(utterances)])
    start = seconds.min()
    slowed: Floats = start + (np.sort(seconds) - start) * slowdown
    return slowed


def _clock_seconds(utterances: Sequence[Utterance]) -> Iterator[float]:
    """Yield the seconds of a clock that never goes back, even if the printed one has twelve hours."""
    second, clock = 0.0, None
    for utterance in utterances:
        if utterance.at is not None:
            previous, clock = clock, utterance.at.timestamp()
            elapsed = 0.0 if previous is None else clock - previous
            second = (
                clock
                if previous is None
                else second + max(elapsed % HALF_DAY if elapsed < -600 else elapsed, 0.0)
            )
        yield second
