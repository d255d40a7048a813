"""The tree of replies of a thread: which message answers which."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from conspectus.model.channels import ANSWERS, REPLY_TO
from conspectus.model.records import Document, StoredChunk
from conspectus.retrieval.boosts import ends_with_question
from conspectus.text.clean import clean


def list_answered_keys(document: Document) -> tuple[str, ...]:
    """Return the keys of the answered message: the one stated by the platform, then the inferred one."""
    keys = (document.metadata.get(name) for name in (REPLY_TO, ANSWERS))
    return tuple(clean(key) for key in keys if isinstance(key, str) and key)


class ReplyTree:
    """The messages of a thread in order, with their replies.

    A message answers the message in its metadata, if that is another message of the thread, else the message
    before it. Metadata is untrusted: references may form circles.
    """

    def __init__(self, rows: Sequence[StoredChunk]) -> None:
        messages = [row.document for row in rows]
        self._messages = messages
        self._is_question = [ends_with_question(row.chunk.text) for row in rows]
        self._by_key = {message.key: position for position, message in enumerate(messages)}
        self._answered = [self._find_answered(position) for position in range(len(messages))]
        self._answers: list[list[int]] = [[] for _ in messages]
        for position, answered in enumerate(self._answered):
            if answered is not None:
                self._answers[answered].append(position)

    @property
    def root(self) -> int:
        """The position of the message that gives the thread its key, else of the first message."""
        return self._by_key.get(self._messages[0].thread or "", 0)

    def by_usefulness(self, position: int) -> list[int]:
        """Return all other messages of the thread, the most useful for context first.

        The order: the answered message, the root, the first answer, the last reply by another author that is
        not a question, and the end of the replies or of the thread. Then alternate further ancestors and
        replies, and finally the remaining messages by distance.
        """
        ancestors, replies = self._ancestors(position), self._replies(position)
        end = replies[-1] if replies else len(self._messages) - 1
        order = [*ancestors[:1], self.root, *self._answers_of_others(position, replies), end]
        for pair in zip_longest(ancestors[1:], replies):
            order.extend(member for member in pair if member is not None)
        order += sorted(range(len(self._messages)), key=lambda member: (abs(member - position), member))
        return [member for member in dict.fromkeys(order) if member != position]

    def _find_answered(self, position: int) -> int | None:
        for key in list_answered_keys(self._messages[position]):
            answered = self._by_key.get(key)
            if answered is not None and answered != position:
                return answered
        return position - 1 if position and position != self.root else None

    def _ancestors(self, position: int) -> list[int]:
        """Return the ancestors of a message, nearest first."""
        path = {position: None}
        answered = self._answered[position]
        while answered is not None and answered not in path:
            path[answered] = None
            answered = self._answered[answered]
        return list(path)[1:]

    def _replies(self, position: int) -> list[int]:
        """Return the direct and indirect replies to a message, in the order of the thread."""
        return sorted(set(self._descendants(position)) - {position, *self._ancestors(position)})

    def _descendants(self, position: int) -> Iterator[int]:
        visited, open_positions = {position}, [position]
        while open_positions:
            answers = [answer for answer in self._answers[open_positions.pop()] if answer not in visited]
            visited.update(answers)
            open_positions += answers
            yield from answers

    def _answers_of_others(self, position: int, replies: Sequence[int]) -> list[int]:
        """Return the first answer, and the last reply by another author that is not a question."""
        author = self._messages[position].author
        others = [reply for reply in replies if self._messages[reply].author != author]
        last = [reply for reply in others if not self._is_question[reply]][-1:]
        direct = self._answers[position]
        first = [reply for reply in direct if reply in others] or direct
        return [*(reply for reply in first[:1] if not self._is_question[reply]), *last, *first[:1]]
