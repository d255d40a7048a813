"""Links between messages, one message at a time."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput
from conspectus.text.replies.features import UNKNOWN, Features, Figures, features
from conspectus.text.replies.history import Floats, Past
from conspectus.text.replies.message_parsing import Utterance, read


class Forest:
    """Trees of at most eight levels that ask one question at each: is this figure over that threshold?

    Args:
        names: the figures that are read.
        features: for each tree and level, which of them.
        thresholds: for each tree and level, over what.
        leaves: for each tree, a value for each row of answers, the first answer being the highest bit.
    """

    def __init__(
        self,
        names: Sequence[str],
        features: Sequence[Sequence[int]],
        *,
        thresholds: Sequence[Sequence[float]],
        leaves: Sequence[Sequence[float]],
    ) -> None:
        self.names = tuple(names)
        self._features = np.array(features, dtype=np.int64).T
        self._thresholds = np.array(thresholds, dtype=np.float32).T[..., np.newaxis]
        values = np.array(leaves, dtype=np.float32)
        self._offsets = np.arange(len(values))[:, np.newaxis] * values.shape[1]
        self._values = values.ravel()

    def sums(self, figures: Mapping[str, Figures], rows: int) -> Floats:
        """For each row the sum over all trees."""
        over = np.take(tabulated(figures, self.names, rows), self._features, axis=0) > self._thresholds
        leaf = np.zeros(over.shape[1:], dtype=np.uint8)
        for answers in over.view(np.uint8):
            leaf = leaf << 1 | answers
        found: Floats = np.take(self._values, self._offsets + leaf).sum(axis=0, dtype=np.float64)
        return found


def tabulated(figures: Mapping[str, Figures], names: Sequence[str], rows: int) -> NDArray[np.float32]:
    """The named figures as one line each; what is not known is -1."""
    table = np.empty((len(names), rows), dtype=np.float32)
    for place, name in enumerate(names):
        table[place] = figures[name]
    np.copyto(table, UNKNOWN, where=np.isnan(table))
    return table


@dataclass(frozen=True, slots=True)
class Judge:
    """Which message a new one answers: `answer` rates the remembered ones, `start` that it answers none."""

    answer: Forest
    start: Forest

    def choose(self, found: Features, count: int) -> int | None:
        """The place of the message that is answered, None for a start."""
        rated = self.answer.sums(found.answer, count)
        best = int(rated.argmax())
        return best if rated[best] > self.start.sums(found.start, 1)[0] else None


def judge(weights: Mapping[str, Mapping[str, Any]]) -> Judge:
    """Both forests from what was written of them."""
    return Judge(**{name: Forest(**parts) for name, parts in weights.items()})


@cache
def shipped() -> Judge:
    """What `scripts/train_replies.py` wrote."""
    text = (resources.files("conspectus.text.replies") / "weights.json").read_text(encoding="utf-8")
    return judge(json.loads(text))


MOST_MEMORY = 1000


class Linker:
    """Finds which earlier message of a channel each message answers.

    Only the last `memory` messages are looked at, so that one linker serves a live channel as well as an
    import. Messages are given in the order in which they were said; one linker belongs to one channel and is
    not to be used by several threads at once.

    Args:
        memory: how many messages are remembered, from 1 to 1000.
        judge: what weighs the signs; the shipped one if None.

    Raises:
        InvalidInput: `memory` is out of range.
    """

    def __init__(self, *, memory: int = 100, judge: Judge | None = None) -> None:
        if not 1 <= memory <= MOST_MEMORY:
            raise InvalidInput("memory", f"must be from 1 to {MOST_MEMORY}, not {memory}")
        self._judge = judge or shipped()
        self._past = Past(memory)

    def link(self, key: str, said: Utterance, *, answers: str | None = None) -> str | None:
        """The key of the message that this one answers, None if it begins a conversation.

        Where it is known, `answers` says so and is given back; a message that is known to begin a
        conversation answers itself. A system line answers nothing and is not remembered. A message that is
        remembered already keeps its link.
        """
        past = self._past
        if key in past.keys:
            return past.answers[past.keys.index(key)]
        begins = answers == key
        answers = None if begins else answers
        if said.system:
            return answers
        reading, at = read(said.text, past.people, past.usage), seconds(said.at)
        if answers is None and not begins and len(past):
            place = self._judge.choose(features(past, reading, said.author, at), len(past))
            answers = None if place is None else past.keys[place]
        past.add(key, said.author, at, reading=reading, answers=answers)
        return answers

    def thread_of(self, key: str) -> str:
        """The key of the first message of a message's conversation; its own where it is forgotten."""
        past = self._past
        return past.roots[past.keys.index(key)] if key in past.keys else key


def seconds(at: datetime | None) -> float:
    """An instant as seconds, not a number where there is none; one without a zone is taken for UTC."""
    if at is None:
        return math.nan
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
