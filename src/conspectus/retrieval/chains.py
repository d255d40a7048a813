"""Reply chains: the messages that a hit answers, and those that answer it."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, zip_longest

from conspectus.model.channels import ANSWERS, REPLY_TO
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, StoredChunk, StoredThread
from conspectus.model.results import Hit, Retrieval, ThreadOutline
from conspectus.retrieval.scoring import asks
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

MOST_HITS = 20
"""So many of the best hits bring a chain."""
LEAST_OF_THREAD = 50
MOST_CHUNKS = 3
"""So many chunks of a long message come along."""
NEAR = 4
PAUSE = 4
"""What a message answers, the root, the answer and the end of the best hit come right behind it. So many hits
go before those of the next one, and before each further message of a chain: on LoCoMo no less evidence fits
into a window then, while with every chain right behind its hit a twentieth of it is pushed out.
"""
STEP = 0.01
"""How far below the last hit of all its chain ends."""


@dataclass(frozen=True, slots=True)
class ChainReader:
    """Reads the thread of a hit, as far as the person may see it.

    `thread` reads the thread of a message, of a long one so many messages, among them what stands around the
    given documents; `messages` the first chunks of documents; `chunks` reads chunks. Only what matches
    `where` comes along. Threads share `most_messages`, but LEAST_OF_THREAD is for each.
    """

    thread: Callable[[Document, Sequence[DocumentId], int], Awaitable[StoredThread]]
    messages: Callable[[Sequence[str]], Awaitable[Sequence[StoredChunk]]]
    chunks: Callable[[Sequence[int]], Awaitable[Sequence[StoredChunk]]]
    where: Filter
    most_messages: int

    def share(self, threads: int) -> int:
        """How many messages are read of each of so many threads."""
        return min(max(self.most_messages // threads, LEAST_OF_THREAD), self.most_messages)


@dataclass(frozen=True, slots=True)
class _Member:
    """A message that the hit of a rank needs, in the `need`-th place."""

    rank: int
    need: int
    row: StoredChunk

    @property
    def slot(self) -> int:
        """The rank of the hit that it stands behind, if there are so many."""
        return self.rank + PAUSE * (self.rank + max(self.need - NEAR + 1, 0))


async def with_chains(found: Retrieval, reading: ChainReader, *, most: int) -> Retrieval:
    """Add reply chains: at most `most` messages for each of the best hits, behind it or a few hits later.

    No hit loses by it; one that belongs to the chain of a better one comes before others.
    """
    asking = _asking(found.hits)
    threads = {key: list(members) for key, members in _by_thread(asking.values())}
    if not threads or most < 1:
        return found
    around = _around(found.hits, threads)
    share = reading.share(len(threads))
    read = await asyncio.gather(
        *(reading.thread(hits[0].document, around[key], share) for key, hits in threads.items())
    )
    stored = dict(zip(threads, read, strict=True))
    elsewhere = await _answered_elsewhere(asking, stored, reading)
    members = [
        _Member(rank, need, row)
        for rank, rows in _needed(asking, stored, elsewhere)
        for need, row in enumerate(islice((row for row in rows if _matches(row, reading.where)), most))
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

    At most `limit` messages; with the root's id, and how many of the thread's `total` are not among them.
    """
    at = _find(thread, message)
    if at is None:
        return [], message.id, total
    exchange = Exchange(thread)
    root = exchange.root
    order = [at, *([root] if root != at else []), *(each for each in exchange.needed(at) if each != root)]
    chosen = sorted(order[: max(limit, 1)])
    return [thread[each] for each in chosen], thread[root].document.id, max(total - len(chosen), 0)


def _asking(hits: Sequence[Hit]) -> dict[int, Hit]:
    """The best hits that are messages of a thread, by rank; of one message the best chunk."""
    found: dict[DocumentId, int] = {}
    for rank, hit in enumerate(hits[:MOST_HITS]):
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
    """What must be read of each thread: all that was found of it, and what the best of that answers."""
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
    """By rank what each hit needs, in that order."""
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


async def _answered_elsewhere(
    asking: Mapping[int, Hit], stored: Mapping[tuple[str, str], StoredThread], reading: ChainReader
) -> dict[int, StoredChunk]:
    """By rank the message of another thread that a hit answers."""
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
    """The chunks of long messages behind the first."""
    first = {each.row.document.id: each.row for each in members if each.row.document.chunks > 1}
    ends = {each: min(row.document.chunks, MOST_CHUNKS) for each, row in first.items()}
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
    """The hits in order, each followed by what stands behind it, with scores that say so."""
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
    """The message's own hit, if it is one, else its chunks."""
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
    """Behind which rank each message goes, once; one that was found itself only where that is better."""
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
    """Evenly between two scores, of which the upper one is never reached."""
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
    """The keys of the message that this one answers: stated by the platform, then inferred."""
    told = (document.metadata.get(name) for name in (REPLY_TO, ANSWERS))
    return tuple(clean(each) for each in told if isinstance(each, str) and each)


class Exchange:
    """The messages of a thread in order, with who answers whom.

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
        """All other messages of the thread, most useful for understanding one first.

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
