"""Which message of a thread answers which, and what it takes to understand one of them."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from conspectus.model.channels import ANSWERS, REPLY_TO
from conspectus.model.records import Document, StoredChunk
from conspectus.retrieval.boosts import asks
from conspectus.text.clean import clean


def answered_keys(document: Document) -> tuple[str, ...]:
    """The keys of the message that this one answers: as the platform says, then as we think."""
    told = (document.metadata.get(name) for name in (REPLY_TO, ANSWERS))
    return tuple(clean(each) for each in told if isinstance(each, str) and each)


class Exchange:
    """The messages of a thread, in its order, as answers to each other.

    A message answers the one that its metadata name, if that is in the thread and not itself; else the one
    before it. What messages say of each other may be anything, circles included.
    """

    def __init__(self, rows: Sequence[StoredChunk]) -> None:
        messages = [row.document for row in rows]
        self._messages = messages
        self._asks = [asks(row.chunk.text) for row in rows]
        self._by_key = {each.key: place for place, each in enumerate(messages)}
        self._answered = [self._answered_by(place) for place in range(len(messages))]
        self._answers: list[list[int]] = [[] for _ in messages]
        for place, answered in enumerate(self._answered):
            if answered is not None:
                self._answers[answered].append(place)

    @property
    def root(self) -> int:
        """The place of the message that the thread is named after, else of the first."""
        return self._by_key.get(self._messages[0].thread or "", 0)

    def needed(self, place: int) -> list[int]:
        """All other messages, in the order in which they help to understand one.

        What it answers, the root, its first answer, what others said last that follows from it and asks
        nothing, the end of what follows from it, or of the thread; then by turns what else leads to it and
        follows from it, then what stands between, nearest first.
        """
        before, after = self._before(place), self._after(place)
        end = after[-1] if after else len(self._messages) - 1
        chosen = [*before[:1], self.root, *self._answers_of_others(place, after), end]
        for pair in zip_longest(before[1:], after):
            chosen.extend(each for each in pair if each is not None)
        chosen += sorted(range(len(self._messages)), key=lambda other: (abs(other - place), other))
        return [each for each in dict.fromkeys(chosen) if each != place]

    def _answered_by(self, place: int) -> int | None:
        for key in answered_keys(self._messages[place]):
            found = self._by_key.get(key)
            if found is not None and found != place:
                return found
        return place - 1 if place and place != self.root else None

    def _before(self, place: int) -> list[int]:
        """What it answers, what that answers, and so on."""
        seen = {place: None}
        answered = self._answered[place]
        while answered is not None and answered not in seen:
            seen[answered] = None
            answered = self._answered[answered]
        return list(seen)[1:]

    def _after(self, place: int) -> list[int]:
        """What answers it, what answers that, and so on, in the order of the thread."""
        return sorted(set(self._following(place)) - {place, *self._before(place)})

    def _following(self, place: int) -> Iterator[int]:
        seen, waiting = {place}, [place]
        while waiting:
            fresh = [each for each in self._answers[waiting.pop()] if each not in seen]
            seen.update(fresh)
            waiting += fresh
            yield from fresh

    def _answers_of_others(self, place: int, after: Sequence[int]) -> list[int]:
        """The first answer, and the last message by somebody else that no longer asks back."""
        author = self._messages[place].author
        others = [each for each in after if self._messages[each].author != author]
        last = [each for each in others if not self._asks[each]][-1:]
        direct = self._answers[place]
        first = [each for each in direct if each in others] or direct
        return [*(each for each in first[:1] if not self._asks[each]), *last, *first[:1]]
