"""Reply chains: the ancestors and replies of a message that is a hit."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice, zip_longest

from conspectus.deferred import dataclass
from conspectus.model.channels import ANSWERS, REPLY_TO
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, StoredChunk, StoredThread
from conspectus.model.results import Hit, Retrieval, ThreadOutline
from conspectus.retrieval.boosts import asks
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

MAX_HITS = 20
"""Maximum number of hits that get a reply chain."""
MIN_THREAD_CHUNKS = 50
MAX_CHUNKS = 3
"""Maximum chunks of a long message in a chain."""
NEAR = 4
PAUSE = 4
"""The first NEAR messages of the best hit's chain follow it directly.

PAUSE hits come between the chains of two hits, and before each further message of a chain. On LoCoMo, windows
then keep all evidence. With each whole chain directly after its hit, a twentieth of the evidence is pushed
out.
"""
STEP = 0.01
"""How far the score of the last chain message is below the score of the last hit."""


@dataclass(frozen=True, slots=True)
class ChainReader:
    """Reads the threads of hits, limited to what the user may read.

    `thread` reads the thread of a message. Of a long thread, it reads a number of messages that includes
    those around the given documents. `messages` reads the first chunks of documents, and `chunks` reads
    chunks. Only messages that match `where` are added. `most_messages` is shared by all threads, with at
    least MIN_THREAD_CHUNKS each.
    """

    thread: Callable[[Document, Sequence[DocumentId], int], Awaitable[StoredThread]]
    messages: Callable[[Sequence[str]], Awaitable[Sequence[StoredChunk]]]
    chunks: Callable[[Sequence[int]], Awaitable[Sequence[StoredChunk]]]
    where: Filter
    max_messages: int

    def share(self, threads: int) -> int:
        """Return the number of messages to read of each thread."""
        return min(max(self.max_messages // threads, MIN_THREAD_CHUNKS), self.max_messages)


@dataclass(frozen=True, slots=True)
class _Member:
    """A message in the chain of the hit at `rank`, with its position in that chain."""

    rank: int
    need: int
    row: StoredChunk

    @property
    def slot(self) -> int:
        """The rank of the hit after which the message is placed, if there are enough hits."""
        return self.rank + PAUSE * (self.rank + max(self.need - NEAR + 1, 0))


async def with_chains(found: Retrieval, reading: ChainReader, *, maximum: int) -> Retrieval:
    """Add up to `most` messages of the reply chain of each of the best hits, after it or a few hits later.

    Scores of hits are never lowered. A hit that belongs to the chain of a better hit moves up.
    """
    asking = _best_messages(found.hits)
    threads = {key: list(members) for key, members in _by_thread(asking.values())}
    if not threads or maximum < 1:
        return found
    around = _around(found.hits, threads)
    share = reading.share(len(threads))
    read = await asyncio.gather(
        *(reading.thread(hits[0].document, around[key], share) for key, hits in threads.items())
    )
    stored = dict(zip(threads, read, strict=True))
    elsewhere = await _answered_in_other_threads(asking, stored, reading)
    members = [
        _Member(rank, need, row)
        for rank, rows in _needed(asking, stored, elsewhere)
        for need, row in enumerate(islice((row for row in rows if _matches(row, reading.where)), maximum))
    ]
    longer = await _longer(members, reading)
    hits = _placed(found.hits, members, longer)
    known = {hit.chunk.id for hit in hits}
    return replace(
        found,
        hits=tuple(hits),
        below_min_similarity=tuple(hit for hit in found.below_min_similarity if hit.chunk.id not in known),
        threads=tuple(_sketch(key, thread) for key, thread in stored.items() if thread.total > 1),
    )


def chain_of(
    message: Document, thread: Sequence[StoredChunk], *, limit: int, total: int
) -> tuple[list[StoredChunk], DocumentId, int]:
    """Return a message with its ancestors and replies, from the first chunks of its thread, in order.

    The result has at most `limit` messages, the id of the root, and how many of the thread's `total` messages
    are missing.
    """
    at = _find(thread, message)
    if at is None:
        return [], message.id, total
    exchange = Exchange(thread)
    root = exchange.root
    order = [at, *([root] if root != at else []), *(each for each in exchange.needed(at) if each != root)]
    chosen = sorted(order[: max(limit, 1)])
    return [thread[each] for each in chosen], thread[root].document.id, max(total - len(chosen), 0)


def _best_messages(hits: Sequence[Hit]) -> dict[int, Hit]:
    """Return the best hits that are messages of a thread by rank, one chunk per message."""
    found: dict[DocumentId, int] = {}
    for rank, hit in enumerate(hits[:MAX_HITS]):
        if hit.document.kind == "message" and hit.document.thread is not None:
            found.setdefault(hit.document.id, rank)
    return {rank: hits[rank] for rank in found.values()}


def _thread_of(document: Document) -> tuple[str, str]:
    return (document.source, document.thread or "")


def _by_thread(hits: Iterable[Hit]) -> Iterator[tuple[tuple[str, str], Iterator[Hit]]]:
    return groupby(
        sorted(hits, key=lambda hit: _thread_of(hit.document)), lambda hit: _thread_of(hit.document)
    )


def _around(
    hits: Sequence[Hit], threads: Mapping[tuple[str, str], Sequence[Hit]]
) -> dict[tuple[str, str], list[DocumentId]]:
    """Return the messages to read of each thread: its hits, and the messages that its best hits answer."""
    around = {
        key: [each for hit in members for each in _answered_ids(hit.document)]
        for key, members in threads.items()
    }
    for hit in hits:
        key = _thread_of(hit.document)
        if key in around:
            around[key].append(hit.document.id)
    return {key: list(dict.fromkeys(ids)) for key, ids in around.items()}


def _answered_ids(document: Document) -> list[DocumentId]:
    keys = answered_keys(document)
    return [DocumentId(stable_id("document", document.source, key)) for key in keys if key != document.key]


def _needed(
    asking: Mapping[int, Hit],
    stored: Mapping[tuple[str, str], StoredThread],
    elsewhere: Mapping[int, StoredChunk],
) -> Iterator[tuple[int, list[StoredChunk]]]:
    """Return the chain of each hit by rank, most useful messages first."""
    exchanges = {key: Exchange(thread.chunks) for key, thread in stored.items()}
    for rank, hit in asking.items():
        key = _thread_of(hit.document)
        rows = stored[key].chunks
        at = _find(rows, hit.document)
        if at is not None:
            first = [elsewhere[rank]] if rank in elsewhere else []
            yield rank, [*first, *(rows[place] for place in exchanges[key].needed(at))]


def _find(rows: Sequence[StoredChunk], message: Document) -> int | None:
    return next((place for place, row in enumerate(rows) if row.document.id == message.id), None)


async def _answered_in_other_threads(
    asking: Mapping[int, Hit], stored: Mapping[tuple[str, str], StoredThread], reading: ChainReader
) -> dict[int, StoredChunk]:
    """Return the messages of other threads that hits answer, by rank."""
    wanted = {
        rank: _answered_ids(hit.document)
        for rank, hit in asking.items()
        if not stored[_thread_of(hit.document)].places.keys() & set(_answered_ids(hit.document))
    }
    ids = list(dict.fromkeys(each for answered in wanted.values() for each in answered))
    found = {row.document.id: row for row in await reading.messages(ids)} if ids else {}
    rows = {rank: [found[each] for each in answered if each in found] for rank, answered in wanted.items()}
    return {rank: answered[0] for rank, answered in rows.items() if answered}


async def _longer(members: Sequence[_Member], reading: ChainReader) -> dict[DocumentId, list[StoredChunk]]:
    """Read the further chunks of long messages."""
    first = {each.row.document.id: each.row for each in members if each.row.document.chunks > 1}
    ends = {each: min(row.document.chunks, MAX_CHUNKS) for each, row in first.items()}
    wanted = [row.chunk.id + more for each, row in first.items() for more in range(1, ends[each])]
    found: dict[DocumentId, list[StoredChunk]] = {}
    for row in await reading.chunks(wanted) if wanted else ():
        found.setdefault(row.document.id, []).append(row)
    return found


def _matches(row: StoredChunk, where: Filter) -> bool:
    return matches(where, document_row(row.document, row.chunk.position))


def _placed(
    hits: Sequence[Hit], members: Sequence[_Member], longer: Mapping[DocumentId, Sequence[StoredChunk]]
) -> list[Hit]:
    """Return the hits in order, each followed by the messages placed after it, with matching scores."""
    own = _first_of(hits)
    behind = _behind(hits, members, own)
    lifted = {own.get(each.row.document.id) for group in behind.values() for each in group}
    placed: list[Hit] = []
    for rank, hit in enumerate(hits):
        if rank not in lifted:
            placed.append(hit)
        following = [each for member in behind.get(rank, ()) for each in _hits_of(member, hits, own, longer)]
        low = hits[rank + 1].score if rank + 1 < len(hits) else hit.score - STEP
        placed += _scored(following, hit.score, low)
    return placed


def _hits_of(
    member: _Member,
    hits: Sequence[Hit],
    own: Mapping[DocumentId, int],
    longer: Mapping[DocumentId, Sequence[StoredChunk]],
) -> list[Hit]:
    """Return the hit of the message if it is a hit, else its chunks."""
    document = member.row.document.id
    if document in own:
        return [hits[own[document]]]
    rows = (member.row, *longer.get(document, ()))
    return [Hit(row.chunk, row.document, 0.0, {}, None, None, hits[member.rank].chunk.id) for row in rows]


def _first_of(hits: Sequence[Hit]) -> dict[DocumentId, int]:
    found: dict[DocumentId, int] = {}
    for rank, hit in enumerate(hits):
        found.setdefault(hit.document.id, rank)
    return found


def _behind(
    hits: Sequence[Hit], members: Sequence[_Member], own: Mapping[DocumentId, int]
) -> dict[int, list[_Member]]:
    """Assign each message to one rank. A message that is a hit moves only if that improves its rank."""
    last = len(hits) - 1
    ends = list(range(len(hits)))
    for rank in range(last - 1, -1, -1):
        if hits[rank].score <= hits[rank + 1].score:
            ends[rank] = ends[rank + 1]
    seen: set[DocumentId] = set()
    behind: dict[int, list[_Member]] = {}
    for member in sorted(members, key=lambda each: (each.slot, each.need, each.rank)):
        rank = ends[min(member.slot, last)]
        document = member.row.document.id
        if document not in seen and rank < own.get(document, last + 1):
            seen.add(document)
            behind.setdefault(rank, []).append(member)
    return behind


def _scored(following: Sequence[Hit], high: float, low: float) -> Iterator[Hit]:
    """Space scores evenly between two scores, always below the upper one."""
    step = (high - low) / (len(following) + 1)
    for place, hit in enumerate(following, start=1):
        score = min(high - step * place, math.nextafter(high, -math.inf))
        parts = {**hit.parts, "thread_message": score - hit.score}
        yield replace(hit, parts=parts, score=min(sum(parts.values()), score))


def _sketch(key: tuple[str, str], thread: StoredThread) -> ThreadOutline:
    return ThreadOutline(
        *key, {str(document): place for document, place in thread.places.items()}, thread.total
    )


def answered_keys(document: Document) -> tuple[str, ...]:
    """Return the keys of the answered message: the one stated by the platform, then the inferred one."""
    keys = (document.metadata.get(name) for name in (REPLY_TO, ANSWERS))
    return tuple(clean(each) for each in keys if isinstance(each, str) and each)


class Exchange:
    """The messages of a thread in order, with their replies.

    A message answers the message in its metadata, if that is another message of the thread, else the message
    before it. Metadata is untrusted: references may form circles.
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
        """The position of the message that gives the thread its key, else of the first message."""
        return self._by_key.get(self._messages[0].thread or "", 0)

    def needed(self, place: int) -> list[int]:
        """Return all other messages of the thread, the most useful for context first.

        The order: the answered message, the root, the first answer, the last reply by another author that is
        not a question, and the end of the replies or of the thread. Then alternate further ancestors and
        replies, and finally the remaining messages by distance.
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
        """Return the ancestors of a message, nearest first."""
        seen = {place: None}
        answered = self._answered[place]
        while answered is not None and answered not in seen:
            seen[answered] = None
            answered = self._answered[answered]
        return list(seen)[1:]

    def _after(self, place: int) -> list[int]:
        """Return the direct and indirect replies to a message, in the order of the thread."""
        return sorted(set(self._following(place)) - {place, *self._before(place)})

    def _following(self, place: int) -> Iterator[int]:
        seen, waiting = {place}, [place]
        while waiting:
            fresh = [each for each in self._answers[waiting.pop()] if each not in seen]
            seen.update(fresh)
            waiting += fresh
            yield from fresh

    def _answers_of_others(self, place: int, after: Sequence[int]) -> list[int]:
        """Return the first answer, and the last reply by another author that is not a question."""
        author = self._messages[place].author
        others = [each for each in after if self._messages[each].author != author]
        last = [each for each in others if not self._asks[each]][-1:]
        direct = self._answers[place]
        first = [each for each in direct if each in others] or direct
        return [*(each for each in first[:1] if not self._asks[each]), *last, *first[:1]]
