"""Statements: the later one comes first where two stand out, and fillers come last."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.records import Chunk, Document, EmbeddingSpace, Period, StoredChunk
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.retrieval.statements import (
    EARLIER_PART,
    FILLER_PART,
    LATER_PART,
    with_statement_parts,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
MINILM = EmbeddingSpace("all-MiniLM-L6-v2", 384)
QUERY = "Where do I live?"
OLD, NEW = ("I live in Köln.", 0.5), ("I moved to Hamburg in May.", 0.35)
OTHERS = [("I am allergic to peanuts.", 0.1), ("It rained.", 0.08), ("I read a novel.", 0.05)]

Turn = tuple[str, float]


def make_row(number: int, text: str, **fields: Any) -> StoredChunk:
    instant = START + timedelta(days=number)
    document = Document(
        DocumentId(f"d{number}"),
        CollectionId("c"),
        SourceId("s"),
        "memory",
        f"k{number}",
        "",
        "",
        "",
        START,
        START,
        role="user",
        occurred=Period(instant, instant),
        number=number,
    )
    chunk = Chunk(ChunkId(number), document.id, 0, text, 0, len(text), 1, "")
    return StoredChunk(chunk, replace(document, **fields))


def rank(turns: Sequence[Turn], **fields_by_number: dict[str, Any]) -> RankedCandidates:
    """Return candidates whose scores are their similarities."""
    rows = {
        number: make_row(number, text, **fields_by_number.get(f"turn_{number}", {}))
        for number, (text, _) in enumerate(turns)
    }
    cosine = np.array([similarity for _, similarity in turns])
    return RankedCandidates(
        ids=np.arange(len(turns), dtype=np.int64),
        bm25=np.zeros(len(turns)),
        cosine=cosine,
        terms=(),
        total=len(turns),
        parts={"keyword": np.zeros(len(turns)), "vector": cosine},
        rows=rows,
        keyword_weight=0.0,
    )


def order(query: str, ranked: RankedCandidates, space: EmbeddingSpace | None = None) -> list[int]:
    totals = np.sum([*with_statement_parts(query, ranked, space).parts.values()], axis=0)
    return [int(position) for position in np.argsort(-totals, kind="stable")]


def test_the_later_of_two_statements_that_stand_out_comes_first() -> None:
    assert order(QUERY, rank([OLD, NEW, *OTHERS]))[:3] == [1, 0, 2]
    parts = with_statement_parts(QUERY, rank([OLD, NEW, *OTHERS])).parts
    assert parts[LATER_PART][1] > 0.15
    assert parts[EARLIER_PART][0] < 0.0
    assert not parts[LATER_PART][[0, 2, 3, 4]].any()


def test_three_statements_about_one_thing_are_in_the_order_of_time() -> None:
    third = ("Now my flat is in Porto.", 0.4)
    assert order(QUERY, rank([OLD, NEW, third, *OTHERS]))[:3] == [2, 1, 0]


def test_a_later_statement_that_does_not_stand_out_stays_behind() -> None:
    crowd = [(f"I like number {number}.", 0.33) for number in range(5)]
    assert order(QUERY, rank([OLD, NEW, *crowd]))[0] == 0


@pytest.mark.parametrize(
    "turns", [[OLD, ("I moved to Hamburg in May.", 0.4)], [OLD, OTHERS[0], ("I moved to Hamburg.", 0.4)]]
)
def test_among_few_statements_one_that_is_nearly_as_similar_comes_first(turns: list[Turn]) -> None:
    later = len(turns) - 1
    assert order(QUERY, rank(turns), MINILM)[:2] == [later, 0]


@pytest.mark.parametrize(
    "turns",
    [
        [OLD, ("I met Ben in May.", 0.3)],
        [OLD, ("I met Ben.", 0.4), ("I met Ann.", 0.35)],
        [OLD, ("I met Ben.", 0.4), ("I met Ann.", 0.32), ("It rained.", 0.32), ("I read.", 0.3)],
        [("I met Ben.", 0.05), ("I met Ann.", 0.04)],
        [("I met Ben.", 0.0), ("I met Ann.", 0.0)],
        [("I met Ben.", -0.02), ("I met Ann.", -0.03)],
    ],
)
def test_few_statements_that_are_less_similar_keep_their_order(turns: list[Turn]) -> None:
    assert order(QUERY, rank(turns), MINILM)[0] == 0


@pytest.mark.parametrize("space", [None, replace(MINILM, model="some-other-model")])
def test_few_statements_keep_their_order_with_similarities_of_unknown_offset(
    space: EmbeddingSpace | None,
) -> None:
    assert order(QUERY, rank([OLD, ("I moved to Hamburg in May.", 0.4)]), space) == [0, 1]


@pytest.mark.parametrize(
    "query",
    ["Where did I live before?", "Wo wohnte ich früher?", "我以前住在哪里", "Where did I live in 2025?"],
)
def test_a_question_about_the_past_has_no_later_first(query: str) -> None:
    assert order(query, rank([OLD, NEW, *OTHERS]))[0] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"trust": "untrusted"},
        {"origin": "agent", "trust": "standard"},
        {"origin": "web"},
        {"role": "assistant"},
        {"author": "Ben"},
    ],
)
def test_nobody_else_speaks_for_a_person(fields: dict[str, Any]) -> None:
    assert order(QUERY, rank([OLD, NEW, *OTHERS], turn_1=fields))[0] == 0


def test_a_person_comes_before_an_older_memory_of_an_agent() -> None:
    agent = {"origin": "agent", "trust": "standard"}
    assert order(QUERY, rank([OLD, NEW, *OTHERS], turn_0=agent))[0] == 1


def test_a_statement_about_somebody_else_does_not_count() -> None:
    sister = ("My sister lives in Lyon.", 0.4)
    assert order(QUERY, rank([OLD, sister, *OTHERS]))[0] == 0


@pytest.mark.parametrize(
    "filler", ["ok", "I will.", "Nice to meet you", "Schön, dass du da bist", "好的我会的"]
)
def test_a_filler_of_the_assistant_comes_last(filler: str) -> None:
    ranked = rank([(filler, 0.6), *OTHERS], turn_0={"role": "assistant"})
    assert order("Who am I?", ranked)[-1] == 0
    assert with_statement_parts("Who am I?", ranked).parts[FILLER_PART][0] == -1.0


@pytest.mark.parametrize("reply", ["It leaves at 8.", "Booked, in Rome", "ok, " + "a " * 30])
def test_a_short_reply_with_content_is_no_filler(reply: str) -> None:
    ranked = rank([(reply, 0.6), *OTHERS], turn_0={"role": "assistant"})
    assert order("Where?", ranked)[0] == 0


def test_the_answer_to_a_question_is_no_filler() -> None:
    ranked = rank([("what is the capital?", 0.5), ("canberra", 0.6), *OTHERS], turn_1={"role": "assistant"})
    rows = {**ranked.rows, 1: replace(ranked.rows[1], previous=ChunkId(0))}
    assert order("capital", replace(ranked, rows=rows))[0] == 1


def test_documents_and_messages_are_left_as_they_are() -> None:
    ranked = rank([OLD, NEW, *OTHERS], **{f"turn_{number}": {"kind": "message"} for number in range(5)})
    assert with_statement_parts(QUERY, ranked) is ranked


def test_memories_without_vectors_keep_their_order() -> None:
    ranked = rank([OLD, NEW, *OTHERS])
    ranked = replace(ranked, cosine=np.full(5, np.nan))
    assert with_statement_parts(QUERY, ranked).parts.keys() == ranked.parts.keys()
