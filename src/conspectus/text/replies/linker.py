"""Links between messages, one message at a time."""

import math
from datetime import UTC, datetime

from conspectus.errors import InvalidInput
from conspectus.text.replies.features import features
from conspectus.text.replies.history import Past
from conspectus.text.replies.message_parsing import Utterance, read
from conspectus.text.replies.tree_model import Judge, shipped

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
