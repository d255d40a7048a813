"""Link each message to the earlier message that it answers, with a model over pairs of messages."""

import math
from datetime import UTC, datetime

from conspectus.errors import InvalidInput
from conspectus.text.replies.features import features
from conspectus.text.replies.forest import Judge, default_judge
from conspectus.text.replies.message_parsing import Utterance, read
from conspectus.text.replies.past import Past

MAX_MEMORY = 1000


class Linker:
    """Finds the earlier message of a channel that each message answers.

    Only the last `memory` messages are considered, so that a linker works for live channels and imports.
    Messages are passed in the order of time. A linker belongs to one channel and is not thread-safe.

    Args:
        memory: number of messages to consider, from 1 to 1000.
        judge: the model; default: the included one.

    Raises:
        InvalidInput: `memory` is out of range.
    """

    def __init__(self, *, memory: int = 100, judge: Judge | None = None) -> None:
        if not 1 <= memory <= MAX_MEMORY:
            raise InvalidInput("memory", f"must be from 1 to {MAX_MEMORY}, not {memory}")
        self._judge = judge or default_judge()
        self._past = Past(memory)

    def link(self, key: str, utterance: Utterance, *, answers: str | None = None) -> str | None:
        """Return the key of the message that this one answers; None if it starts a conversation.

        A known `answers` is returned; a message that is known to start a conversation answers itself. System
        messages answer nothing and are ignored. A repeated message keeps its link.
        """
        past = self._past
        if key in past.keys:
            return past.answers[past.keys.index(key)]
        begins = answers == key
        answers = None if begins else answers
        if utterance.system:
            return answers
        reading, at = read(utterance.text, past.people, past.usage), seconds(utterance.at)
        confidence = None
        if answers is None and not begins and len(past):
            position, confidence = self._judge.choose(
                features(past, reading, utterance.author, at), len(past)
            )
            answers = None if position is None else past.keys[position]
        past.add(key, utterance.author, at, reading=reading, answers=answers)
        past.confidences[-1] = confidence
        return answers

    def confidence_of(self, key: str) -> float | None:
        """Return the probability of the choice for a message; None if its link was known or is forgotten."""
        past = self._past
        if key in past.keys:
            return past.confidences[past.keys.index(key)]
        return None

    def thread_of(self, key: str) -> str:
        """Return the key of the first message of a conversation; the message's own key if it is forgotten."""
        past = self._past
        return past.roots[past.keys.index(key)] if key in past.keys else key


def seconds(at: datetime | None) -> float:
    """Return an instant in seconds, NaN for None; the default time zone is UTC."""
    if at is None:
        return math.nan
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
