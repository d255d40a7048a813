"""Reply chains: the ancestors and replies of a message that is a hit."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from conspectus.deferred import dataclass
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, StoredChunk, StoredThread
from conspectus.model.results import Hit, Retrieval, ThreadOutline
from conspectus.retrieval.reply_tree import ReplyTree, list_answered_keys
from conspectus.text.hashing import stable_id

MAX_HITS = 20
"""Maximum number of hits that get a reply chain."""
MIN_THREAD_CHUNKS = 50
"""Minimum number of messages that may be read of each thread."""
MAX_CHUNKS = 3
"""Maximum chunks of a long message in a chain."""
MAX_NEAR_MESSAGES = 4
MIN_HITS_BETWEEN = 4
"""The first MAX_NEAR_MESSAGES messages of the best hit's chain follow it directly.

MIN_HITS_BETWEEN hits come between the chains of two hits, and before each further message of a chain. On
LoCoMo, windows then keep all evidence. With each whole chain directly after its hit, a twentieth of the
evidence is pushed out.
"""
MIN_SCORE_STEP = 0.01
"""How far the score of the last chain message is below the score of the last hit."""


@dataclass(frozen=True, slots=True)
class ChainReader:
    """Reads the threads of hits, limited to what the user may read.

    `thread` reads the thread of a message. Of a long thread, it reads a number of messages that includes
    those around some documents. `messages` reads the first chunks of documents, and `chunks` reads chunks.
    Only messages that match `where` are added. `max_messages` is shared by all threads, with at least
    MIN_THREAD_CHUNKS each.
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
class _ChainMember:
    """A message in the chain of the hit at `rank`, with its rank by usefulness in that chain."""

    rank: int
    usefulness_rank: int
    row: StoredChunk

    @property
    def slot(self) -> int:
        """The rank of the hit after which the message is placed, if there are enough hits."""
        beyond_near = max(self.usefulness_rank - MAX_NEAR_MESSAGES + 1, 0)
        return self.rank + MIN_HITS_BETWEEN * (self.rank + beyond_near)


async def with_chains(retrieval: Retrieval, reader: ChainReader, *, maximum: int) -> Retrieval:
    """Add up to `maximum` messages of the reply chain of each of the best hits, after it or a few hits later.

    Scores of hits are never lowered. A hit that belongs to the chain of a better hit moves up.
    """
    messages = _best_messages(retrieval.hits)
    threads: dict[tuple[str, str], list[Hit]] = {}
    for message in sorted(messages.values(), key=lambda hit: _thread_of(hit.document)):
        threads.setdefault(_thread_of(message.document), []).append(message)
    if not threads or maximum < 1:
        return retrieval
    ids = _ids_to_read(retrieval.hits, threads)
    share = reader.share(len(threads))
    stored_threads = await asyncio.gather(
        *(reader.thread(hits[0].document, ids[key], share) for key, hits in threads.items())
    )
    stored = dict(zip(threads, stored_threads, strict=True))
    elsewhere = await _read_answered_elsewhere(messages, stored, reader)
    members: list[_ChainMember] = []
    for rank, rows in _chains_by_rank(messages, stored, elsewhere):
        matching = (
            row for row in rows if matches(reader.where, document_row(row.document, row.chunk.position))
        )
        members += [_ChainMember(rank, *ranked) for ranked in enumerate(islice(matching, maximum))]
    further_chunks = await _read_further_chunks(members, reader)
    hits = _insert_members(retrieval.hits, members, further_chunks)
    chunks = {hit.chunk.id for hit in hits}
    return replace(
        retrieval,
        hits=tuple(hits),
        below_min_similarity=tuple(
            hit for hit in retrieval.below_min_similarity if hit.chunk.id not in chunks
        ),
        threads=tuple(_outline_of(key, thread) for key, thread in stored.items() if thread.total > 1),
    )


def chain_of(
    message: Document, thread: Sequence[StoredChunk], *, limit: int, total: int
) -> tuple[list[StoredChunk], DocumentId, int]:
    """Return a message with its ancestors and replies, from the first chunks of its thread, in order.

    The result has at most `limit` messages, the id of the root, and how many of the thread's `total` messages
    are missing.
    """
    position = _position_of(thread, message)
    if position is None:
        return [], message.id, total
    tree = ReplyTree(thread)
    order = dict.fromkeys((position, tree.root, *tree.by_usefulness(position)))
    members = sorted(islice(order, max(limit, 1)))
    root = thread[tree.root].document.id
    return [thread[member] for member in members], root, max(total - len(members), 0)


def _best_messages(hits: Sequence[Hit]) -> dict[int, Hit]:
    """Return the best hits that are messages of a thread by rank, one chunk per message."""
    ranks: dict[DocumentId, int] = {}
    for rank, hit in enumerate(hits[:MAX_HITS]):
        if hit.document.kind == "message" and hit.document.thread is not None:
            ranks.setdefault(hit.document.id, rank)
    return {rank: hits[rank] for rank in ranks.values()}


def _thread_of(document: Document) -> tuple[str, str]:
    return (document.source, document.thread or "")


def _ids_to_read(
    hits: Sequence[Hit], threads: Mapping[tuple[str, str], Sequence[Hit]]
) -> dict[tuple[str, str], list[DocumentId]]:
    """Return the messages to read of each thread: its hits, and the messages that its best hits answer."""
    ids = {
        key: [answered for hit in best for answered in _list_answered_ids(hit.document)]
        for key, best in threads.items()
    }
    for hit in hits:
        key = _thread_of(hit.document)
        if key in ids:
            ids[key].append(hit.document.id)
    return {key: list(dict.fromkeys(documents)) for key, documents in ids.items()}


def _list_answered_ids(document: Document) -> list[DocumentId]:
    keys = list_answered_keys(document)
    return [DocumentId(stable_id("document", document.source, key)) for key in keys if key != document.key]


def _chains_by_rank(
    messages: Mapping[int, Hit],
    stored: Mapping[tuple[str, str], StoredThread],
    elsewhere: Mapping[int, StoredChunk],
) -> Iterator[tuple[int, list[StoredChunk]]]:
    """Return the chain of each hit by rank, most useful messages first."""
    trees = {key: ReplyTree(thread.chunks) for key, thread in stored.items()}
    for rank, hit in messages.items():
        key = _thread_of(hit.document)
        rows = stored[key].chunks
        position = _position_of(rows, hit.document)
        if position is not None:
            first = [elsewhere[rank]] if rank in elsewhere else []
            yield rank, [*first, *(rows[member] for member in trees[key].by_usefulness(position))]


def _position_of(rows: Sequence[StoredChunk], message: Document) -> int | None:
    return next((position for position, row in enumerate(rows) if row.document.id == message.id), None)


async def _read_answered_elsewhere(
    messages: Mapping[int, Hit], stored: Mapping[tuple[str, str], StoredThread], reader: ChainReader
) -> dict[int, StoredChunk]:
    """Return the messages of other threads that hits answer, by rank."""
    answered = {
        rank: _list_answered_ids(hit.document)
        for rank, hit in messages.items()
        if not stored[_thread_of(hit.document)].places.keys() & set(_list_answered_ids(hit.document))
    }
    ids = list(dict.fromkeys(chain.from_iterable(answered.values())))
    rows = {row.document.id: row for row in await reader.messages(ids)} if ids else {}
    first = {
        rank: next((document for document in documents if document in rows), None)
        for rank, documents in answered.items()
    }
    return {rank: rows[document] for rank, document in first.items() if document is not None}


async def _read_further_chunks(
    members: Sequence[_ChainMember], reader: ChainReader
) -> dict[DocumentId, list[StoredChunk]]:
    """Read the further chunks of long messages."""
    long = {member.row.document.id: member.row for member in members if member.row.document.chunks > 1}
    ids = [
        row.chunk.id + offset
        for row in long.values()
        for offset in range(1, min(row.document.chunks, MAX_CHUNKS))
    ]
    chunks: dict[DocumentId, list[StoredChunk]] = {}
    for row in await reader.chunks(ids) if ids else ():
        chunks.setdefault(row.document.id, []).append(row)
    return chunks


def _insert_members(
    hits: Sequence[Hit],
    members: Sequence[_ChainMember],
    further_chunks: Mapping[DocumentId, Sequence[StoredChunk]],
) -> list[Hit]:
    """Return the hits in order, each followed by the messages placed after it, with matching scores."""
    first_ranks: dict[DocumentId, int] = {}
    for rank, hit in enumerate(hits):
        first_ranks.setdefault(hit.document.id, rank)
    members_by_rank = _members_by_rank(hits, members, first_ranks)
    moved = {
        first_ranks.get(member.row.document.id) for group in members_by_rank.values() for member in group
    }
    ordered: list[Hit] = []
    for rank, hit in enumerate(hits):
        if rank not in moved:
            ordered.append(hit)
        following = [
            member_hit
            for member in members_by_rank.get(rank, ())
            for member_hit in _hits_of_member(member, hits, first_ranks, further_chunks)
        ]
        low = hits[rank + 1].score if rank + 1 < len(hits) else hit.score - MIN_SCORE_STEP
        ordered += _with_spaced_scores(following, hit.score, low)
    return ordered


def _hits_of_member(
    member: _ChainMember,
    hits: Sequence[Hit],
    first_ranks: Mapping[DocumentId, int],
    further_chunks: Mapping[DocumentId, Sequence[StoredChunk]],
) -> list[Hit]:
    """Return the hit of the message if it is a hit, else its chunks."""
    document = member.row.document.id
    if document in first_ranks:
        return [hits[first_ranks[document]]]
    rows = (member.row, *further_chunks.get(document, ()))
    return [Hit(row.chunk, row.document, 0.0, {}, None, None, hits[member.rank].chunk.id) for row in rows]


def _members_by_rank(
    hits: Sequence[Hit], members: Sequence[_ChainMember], first_ranks: Mapping[DocumentId, int]
) -> dict[int, list[_ChainMember]]:
    """Assign each message to one rank. A message that is a hit moves only if that improves its rank."""
    last = len(hits) - 1
    ends = list(range(len(hits)))
    for rank in range(last - 1, -1, -1):
        if hits[rank].score <= hits[rank + 1].score:
            ends[rank] = ends[rank + 1]
    assigned: set[DocumentId] = set()
    by_rank: dict[int, list[_ChainMember]] = {}
    for member in sorted(members, key=lambda member: (member.slot, member.usefulness_rank, member.rank)):
        rank = ends[min(member.slot, last)]
        document = member.row.document.id
        if document not in assigned and rank < first_ranks.get(document, last + 1):
            assigned.add(document)
            by_rank.setdefault(rank, []).append(member)
    return by_rank


def _with_spaced_scores(hits: Sequence[Hit], high: float, low: float) -> Iterator[Hit]:
    """Space scores evenly between two scores, always below the upper one."""
    step = (high - low) / (len(hits) + 1)
    for number, hit in enumerate(hits, start=1):
        score = min(high - step * number, math.nextafter(high, -math.inf))
        parts = {**hit.parts, "thread_message": score - hit.score}
        yield replace(hit, parts=parts, score=min(sum(parts.values()), score))


def _outline_of(key: tuple[str, str], thread: StoredThread) -> ThreadOutline:
    positions = {str(document): position for document, position in thread.places.items()}
    return ThreadOutline(*key, positions, thread.total)
