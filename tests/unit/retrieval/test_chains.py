"""The messages of a reply chain that are returned with a hit, and their order."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.samples import NOON, prepared

from conspectus.model.filter import EVERYTHING, Eq, Filter, Not
from conspectus.model.ids import ChunkId, DocumentId, SourceId
from conspectus.model.records import Chunk, Document, Period, StoredChunk, StoredThread
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.chains import (
    MAX_CHUNKS,
    MAX_HITS,
    MIN_THREAD_CHUNKS,
    ChainReader,
    chain_of,
    with_chains,
)
from conspectus.text.hashing import stable_id


def message_document(
    number: int, *, answers: str | None = None, thread: str = "0", author: str = "Ada", **fields
) -> Document:
    """Message number n of a channel, a minute after the one before; its key is its number."""
    at = NOON + timedelta(minutes=number)
    key = fields.pop("key", str(number))
    source = fields.get("source", "notes")
    metadata = {} if answers is None else {"reply_to": answers}
    plain = prepared(key, kind="message", thread=thread, occurred=Period(at, at), author=author, chunks=1)
    document = replace(plain.document, id=DocumentId(stable_id("document", source, key)), metadata=metadata)
    return replace(document, **fields)


def chunk_row(document: Document, number: int, *, position: int = 0) -> StoredChunk:
    text = f"text {number}"
    return StoredChunk(Chunk(ChunkId(number), document.id, position, text, 0, len(text), 2, text), document)


class Channel:
    """Messages in their threads; chunk n is that of message n. Remembers what was read."""

    def __init__(self, *messages: Document) -> None:
        self.rows = [chunk_row(message, number) for number, message in enumerate(messages)]
        self.reads: list[tuple[str, int]] = []

    def hit(self, number: int, score: float) -> Hit:
        row = self.rows[number]
        return Hit(row.chunk, row.document, score, {"keyword": score}, None, None)

    async def thread(self, message: Document, around: Sequence[DocumentId], limit: int) -> StoredThread:
        self.reads.append((message.thread or "", limit))
        rows = [row for row in self.rows if row.document.thread == message.thread]
        return StoredThread(tuple(rows), {row.document.id: at for at, row in enumerate(rows)}, len(rows))

    async def messages(self, ids: Sequence[str]) -> list[StoredChunk]:
        return [row for row in self.rows if row.document.id in ids]

    async def chunks(self, ids: Sequence[int]) -> list[StoredChunk]:
        owners = {row.chunk.id: row.document for row in self.rows}
        return [chunk_row(owners[ChunkId(id_ // 100 * 100)], id_, position=id_ % 100) for id_ in ids]

    def chained(
        self, scores: Mapping[int, float], *, maximum: int = 8, condition: Filter = EVERYTHING
    ) -> Retrieval:
        hits = tuple(self.hit(number, score) for number, score in scores.items())
        reading = ChainReader(self.thread, self.messages, self.chunks, condition, 500)
        return asyncio.run(with_chains(Retrieval("found", hits), reading, maximum=maximum))


def chunk_ids(retrieval: Retrieval) -> list[int]:
    return [hit.chunk.id for hit in retrieval.hits]


def key_question() -> Channel:
    """The example of the seed: each message answers the one before it."""
    return Channel(
        message_document(0), *(message_document(number, answers=str(number - 1)) for number in (1, 2, 3))
    )


@pytest.mark.parametrize(
    "maximum, expected", [(1, [3, 2]), (2, [3, 2, 0]), (3, [3, 2, 0, 1]), (8, [3, 2, 0, 1])]
)
def test_the_fourth_message_brings_the_three_that_it_needs(maximum: int, expected: list[int]) -> None:
    retrieval = key_question().chained({3: 0.9}, maximum=maximum)
    assert chunk_ids(retrieval) == expected
    assert [hit.along_with for hit in retrieval.hits] == [None, *[3] * (len(expected) - 1)]


def test_a_question_brings_its_answer_and_the_end() -> None:
    """Five messages about an error, of which three fit: the error, the first answer, and the last one."""
    channel = Channel(*(message_document(number, author="AB"[number % 2]) for number in range(5)))
    assert chunk_ids(channel.chained({0: 0.9}, maximum=2)) == [0, 1, 3]
    assert chunk_ids(channel.chained({0: 0.9}, maximum=3)) == [0, 1, 3, 4]


def test_the_first_answer_is_somebody_elses() -> None:
    messages = (
        message_document(0),
        message_document(1, answers="0"),
        message_document(2, answers="0", author="Bob"),
        message_document(3, answers="0"),
    )
    assert chunk_ids(Channel(*messages).chained({0: 0.9}, maximum=1)) == [0, 2]


def test_replies_are_found_where_others_talk_in_between() -> None:
    """Two conversations in one thread: the own one comes first, then what stands between, nearest first."""
    answered = {2: "0", 3: "1", 4: "2", 5: "3", 6: "4", 7: "5"}
    messages = [
        message_document(0),
        message_document(1),
        *(message_document(number, answers=key) for number, key in answered.items()),
    ]
    assert chunk_ids(Channel(*messages).chained({4: 0.9}, maximum=6)) == [4, 2, 0, 6, 3, 5, 1]


def test_where_all_answer_the_root_the_nearest_come_after_root_and_end() -> None:
    """As in a platform whose threads have one level."""
    channel = Channel(message_document(0), *(message_document(number, answers="0") for number in range(1, 9)))
    assert chunk_ids(channel.chained({4: 0.9}, maximum=5)) == [4, 0, 8, 3, 5, 2]
    assert chunk_ids(channel.chained({0: 0.9}, maximum=3)) == [0, 1, 8, 2]


@pytest.mark.parametrize(
    "links",
    [
        {0: "1", 1: "2", 2: "0"},
        {0: "0", 1: "1", 2: "2", 3: "3"},
        {0: "3", 1: "3", 2: "3"},
        {1: "deleted", 2: "", 3: "\ud800"},
        {0: "1", 1: "0", 2: "1", 3: "2"},
    ],
)
def test_whatever_messages_say_of_each_other_everything_comes_once(links: Mapping[int, str]) -> None:
    """Circles, replies to oneself, to what comes later, to what is gone."""
    channel = Channel(*(message_document(number, answers=links.get(number)) for number in range(4)))
    for number in range(4):
        retrieval = channel.chained({number: 0.9}, maximum=8)
        assert (retrieval.hits[0].chunk.id, sorted(chunk_ids(retrieval))) == (number, [0, 1, 2, 3])


def test_a_parent_in_another_thread_of_the_channel_comes_along() -> None:
    channel = Channel(message_document(0, thread="other"), message_document(1, thread="mine", answers="0"))
    assert chunk_ids(channel.chained({1: 0.9})) == [1, 0]
    channel.rows.append(chunk_row(message_document(2, thread="mine"), 2))
    assert chunk_ids(channel.chained({1: 0.9}, maximum=1)) == [1, 0]


def test_a_parent_in_another_channel_does_not() -> None:
    channel = Channel(
        message_document(0, source=SourceId("elsewhere")), message_document(1, thread="mine", answers="0")
    )
    assert chunk_ids(channel.chained({1: 0.9})) == [1]


def test_what_the_filter_hides_stays_hidden() -> None:
    """Wherever it comes from, and without taking the place of what may be shown."""
    channel = Channel(
        message_document(0, author="Eve", thread="other"),
        *(message_document(number) for number in range(1, 5)),
    )
    channel.rows[3] = replace(channel.rows[3], document=message_document(3, author="Eve"))
    channel.rows[4] = replace(channel.rows[4], document=message_document(4, answers="0"))
    assert chunk_ids(channel.chained({4: 0.9}, maximum=2, condition=Not(Eq("author", "Eve")))) == [4, 1, 2]


def test_hits_of_one_thread_share_and_none_is_demoted() -> None:
    channel = Channel(*(message_document(number) for number in range(6)))
    retrieval = channel.chained({5: 0.9, 2: 0.8, 1: 0.2}, maximum=8)
    assert sorted(chunk_ids(retrieval)) == list(range(6))
    scores = {hit.chunk.id: hit.score for hit in retrieval.hits if hit.along_with is None}
    assert scores[5] == 0.9
    assert scores[2] >= 0.8
    assert scores[1] >= 0.2


def test_a_better_hit_brings_a_worse_one_forward() -> None:
    """It stays a hit of its own, and its parts say why it stands there."""
    others = [message_document(number, thread=f"t{number}", key=f"k{number}") for number in range(2, 6)]
    channel = Channel(message_document(0), message_document(1, answers="0"), *others)
    retrieval = channel.chained({1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6, 0: 0.1})
    assert chunk_ids(retrieval) == [1, 0, 2, 3, 4]
    assert retrieval.hits[1].along_with is None
    assert retrieval.hits[1].parts == {"keyword": 0.1, "thread_message": pytest.approx(0.75)}


def test_long_messages_come_as_their_first_chunks() -> None:
    channel = Channel(message_document(0, chunks=2), message_document(1, chunks=50), message_document(2))
    channel.rows = [chunk_row(row.document, number * 100) for number, row in enumerate(channel.rows)]
    retrieval = channel.chained({2: 0.9})
    assert chunk_ids(retrieval) == [200, 100, 101, 102, 0, 1]
    assert MAX_CHUNKS == 3


def test_what_the_floor_kept_out_is_not_listed_when_it_comes_along() -> None:
    channel = key_question()
    hits, below = (
        (channel.hit(3, 0.9),),
        (channel.hit(2, 0.1), replace(channel.hit(3, 0.0), chunk=chunk_row(message_document(9), 9).chunk)),
    )
    reading = ChainReader(channel.thread, channel.messages, channel.chunks, EVERYTHING, 500)
    retrieval = asyncio.run(
        with_chains(Retrieval("found", hits, below_min_similarity=below), reading, maximum=1)
    )
    assert (chunk_ids(retrieval), [hit.chunk.id for hit in retrieval.below_min_similarity]) == ([3, 2], [9])


def test_what_is_no_message_brings_nothing_and_reads_nothing() -> None:
    channel = Channel(
        message_document(0, kind="page"), message_document(1, thread=None), message_document(2, kind="page")
    )
    assert chunk_ids(channel.chained({0: 0.9, 1: 0.8})) == [0, 1]
    assert chunk_ids(channel.chained({})) == []
    assert channel.reads == []


def test_each_thread_is_read_once_and_only_those_of_the_best() -> None:
    channel = Channel(*(message_document(number, thread=f"t{number // 2}") for number in range(100)))
    retrieval = channel.chained({number: 1.0 - number / 100 for number in range(100)})
    assert len(channel.reads) == len(set(channel.reads)) == MAX_HITS / 2
    assert {limit for _, limit in channel.reads} == {MIN_THREAD_CHUNKS}
    assert len(retrieval.threads) == MAX_HITS / 2
    assert chunk_ids(retrieval) == list(range(100))


@pytest.mark.parametrize("maximum, threads, share", [(500, 1, 500), (500, 4, 125), (500, 20, 50), (9, 3, 9)])
def test_threads_share_what_may_be_read(maximum: int, threads: int, share: int) -> None:
    channel = Channel()
    assert (
        ChainReader(channel.thread, channel.messages, channel.chunks, EVERYTHING, maximum).share(threads)
        == share
    )


def test_sketches_tell_where_each_message_stands() -> None:
    channel = key_question()
    [outline] = channel.chained({3: 0.9}, maximum=1).threads
    assert (outline.source, outline.thread, outline.total) == ("notes", "0", 4)
    assert outline.places == {str(row.document.id): at for at, row in enumerate(channel.rows)}


def test_a_message_that_is_gone_meanwhile_brings_nothing() -> None:
    channel = key_question()
    hit = channel.hit(3, 0.9)
    channel.rows.pop()
    reading = ChainReader(channel.thread, channel.messages, channel.chunks, EVERYTHING, 500)
    assert chunk_ids(asyncio.run(with_chains(Retrieval("found", (hit,)), reading, maximum=8))) == [3]


@st.composite
def channels(draw: st.DrawFn) -> Channel:
    """Up to thirty messages in three threads, each answering anything."""
    size = draw(st.integers(1, 30))
    links = st.none() | st.integers(-1, size).map(str)
    threads = st.sampled_from("012")
    return Channel(
        *(message_document(number, answers=draw(links), thread=draw(threads)) for number in range(size))
    )


@given(channels(), st.data(), st.integers(0, 9))
def test_chains_add_and_never_take(channel: Channel, data: st.DataObject, maximum: int) -> None:
    """Scores fall, are the sums of their parts, own hits keep theirs at least, and nothing comes twice."""
    numbers_of_messages = st.integers(0, len(channel.rows) - 1)
    scores = data.draw(
        st.dictionaries(numbers_of_messages, st.sampled_from([0.9, 0.5, 0.5, 0.25, -0.5, 1 / 3]))
    )
    ranked = dict(sorted(scores.items(), key=lambda pair: -pair[1]))
    retrieval = channel.chained(ranked, maximum=maximum)
    after = chunk_ids(retrieval)
    assert len(after) == len(set(after))
    assert len(after) <= len(ranked) * (1 + maximum)
    assert all(hit.score >= following.score for hit, following in pairwise(retrieval.hits))
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in retrieval.hits)
    own_scores = {hit.chunk.id: hit.score for hit in retrieval.hits if hit.along_with is None}
    assert set(own_scores) == set(ranked)
    assert all(own_scores[number] >= score for number, score in ranked.items())
    if ranked:
        assert after[0] == next(iter(ranked))
    assert retrieval == channel.chained(ranked, maximum=maximum)


@given(channels(), st.data(), st.integers(-1, 40))
def test_the_chain_of_a_message(channel: Channel, data: st.DataObject, limit: int) -> None:
    """In the order of the thread, the message and the root always there, the rest counted."""
    message = data.draw(st.sampled_from(channel.rows)).document
    thread = [row for row in channel.rows if row.document.thread == message.thread]
    members, root, left_out = chain_of(message, thread, limit=limit, total=len(thread))
    ids = [member.document.id for member in members]
    assert ids == [message.document.id for message in thread if message.document.id in ids]
    assert message.id in ids
    assert root in ids or limit < 2
    assert len(ids) == min(max(limit, 1), len(thread))
    assert left_out == len(thread) - len(ids)


def test_the_chain_of_what_is_not_there() -> None:
    assert chain_of(message_document(7), [], limit=5, total=0) == ([], message_document(7).id, 0)
