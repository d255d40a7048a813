"""How well links between messages are found where a platform has no threads."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from conspectus.evals.metrics import percent
from conspectus.evals.partitions import exact_match, information_kept, link_scores, one_to_one
from conspectus.evals.thread_sets import JudgedChannel, read_judged_channels, successions
from conspectus.ports import Progress
from conspectus.text.replies import Linker, Utterance

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
    found = []
    for number, channel in enumerate(channels):
        if progress is not None:
            progress("linking", number, len(channels))
        found.append(outcome(channel, linked(channel.said)))
    judged = [one for one in found if one.channel.threads]
    before = [outcome(one.channel, message_before(one.channel.said)) for one in judged]
    return ThreadsReport(
        channels=len(channels),
        messages=sum(len(channel.said) for channel in channels),
        judged=sum(len(channel.threads) for channel in channels),
        linked=measured(judged),
        message_before=measured(before),
        by_channel={one.channel.name: measured([one]) for one in judged},
    )


def linked(said: Sequence[Utterance], linker: Linker | None = None) -> Links:
    """What each message answers by place, itself where it begins a conversation."""
    linker = linker or Linker()
    found = (linker.link(str(place), utterance) for place, utterance in enumerate(said))
    return {place: place if answers is None else int(answers) for place, answers in enumerate(found)}


def message_before(said: Sequence[Utterance]) -> Links:
    """Every message answers the one before it; system lines answer nothing and are not answered."""
    links: dict[int, int] = {}
    last: int | None = None
    for place, utterance in enumerate(said):
        links[place] = place if last is None or utterance.system else last
        last = last if utterance.system else place
    return links


def outcome(channel: JudgedChannel, links: Links) -> Outcome:
    """Follow the links, which lead to earlier messages only, back to the first of each conversation."""
    roots: dict[int, int] = {}
    for place in sorted(links):
        roots[place] = roots.get(links[place], links[place])
    return Outcome(channel, links, roots)


def measured(found: Sequence[Outcome]) -> ThreadFigures:
    """The figures of several channels together."""
    true = [list(one.channel.threads.values()) for one in found]
    ours = [[one.roots[place] for place in one.channel.threads] for one in found]
    agreeing = [one_to_one(*pair) * len(pair[0]) for pair in zip(true, ours, strict=True)]
    true_labels, our_labels = _numbered(true), _numbered(ours)
    succeeding = [{place: one.roots[place] for place in one.channel.threads} for one in found]
    figures = ThreadFigures(
        last_of_thread=_compared(
            found,
            [successions(one.channel.threads) for one in found],
            [successions(each) for each in succeeding],
        ),
        one_to_one=round(100 * math.fsum(agreeing) / len(true_labels), 2),
        exact_match_f1=percent([exact_match(true_labels, our_labels).f1]),
        information_kept=percent([information_kept(true_labels, our_labels)]),
    )
    answered = [{place: frozenset({to}) for place, to in one.links.items()} for one in found]
    if all(one.channel.answers is not None for one in found):
        figures["links"] = _compared(found, [one.channel.answers or {} for one in found], answered)
    else:
        derived = [successions(one.channel.threads) for one in found]
        figures["links_to_last_of_thread"] = _compared(found, derived, answered)
    return figures


def _compared(
    found: Sequence[Outcome],
    true: Sequence[Mapping[int, Set[int]]],
    ours: Sequence[Mapping[int, Set[int]]],
) -> LinkFigures:
    names = [one.channel.name for one in found]
    scores = link_scores(_placed(names, true), _placed(names, ours))
    return LinkFigures(
        precision=percent([scores.precision]), recall=percent([scores.recall]), f1=percent([scores.f1])
    )


def _placed(names: Sequence[str], links: Sequence[Mapping[int, Set[int]]]) -> dict[Place, Set[Place]]:
    return {
        (name, place): {(name, to) for to in answered}
        for name, each in zip(names, links, strict=True)
        for place, answered in each.items()
    }


def _numbered(labels: Sequence[Sequence[object]]) -> list[tuple[int, object]]:
    """The labels of all channels, told apart by the channel's number."""
    return [(number, label) for number, each in enumerate(labels) for label in each]
