"""The window of an explanation is the window that a caller gets, byte by byte."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

import conspectus
from conspectus import NewDocument, NewMessage
from conspectus.model.query import QueryOptions
from conspectus.settings import Settings
from conspectus.sync import BlockingEngine

SUBJECTS = ("harbor", "crane", "ferry", "walrus", "lighthouse", "anchor", "tide", "rope")
FILLERS = ("is old", "was painted green in May", "stands by the water", "needs two people at night", "broke")
TEXTS, MESSAGES = 160, 60
QUERIES = st.builds(" ".join, st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=3))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    chance = random.Random(7)

    def sentence() -> str:
        return f"The {chance.choice(SUBJECTS)} {chance.choice(FILLERS)}, says page {chance.randint(1, 400)}."

    documents = [
        NewDocument(" ".join(sentence() for _ in range(chance.randint(1, 14))), title=f"Page {number}")
        for number in range(TEXTS)
    ]
    messages = [
        NewMessage(
            sentence(),
            author=chance.choice(["ann", "bo"]),
            key=f"m{number}",
            reply_to=f"m{chance.randrange(number)}" if number and chance.random() < 0.6 else None,
        )
        for number in range(MESSAGES)
    ]
    store = tmp_path_factory.mktemp("explained")
    with conspectus.open(store, settings=replace(Settings(), embedder="minilm")) as opened:
        opened.add(documents, wait=True)
        opened.channels.add_messages(messages, channel="talk", wait=True)
        yield opened


@settings(max_examples=tries(60), deadline=None)
@given(
    query=QUERIES,
    tokens=st.integers(0, 4_000),
    limit=st.one_of(st.none(), st.integers(0, 80)),
    chain=st.integers(0, 4),
    fits_from=st.booleans(),
)
def test_an_explanation_shows_the_bytes_of_the_window(
    engine: BlockingEngine, query: str, tokens: int, limit: int | None, chain: int, fits_from: bool
) -> None:
    options: QueryOptions = {"thread_messages": chain}
    if limit is not None:
        options["limit"] = limit
    window = engine.window(query, tokens, **options)
    explained = engine.explain(query, tokens, fits_from=fits_from, **options)
    assert (explained.text, explained.tokens) == (window.text, window.tokens)
    assert (explained.citations, explained.state) == (window.citations, window.state)
    window_candidates = [(candidate.chunk, candidate.status, candidate.reason) for candidate in window.trace]
    assert [(candidate.chunk, candidate.status, candidate.reason) for candidate in explained.trace][
        : len(window_candidates)
    ] == window_candidates
    assert [candidate.rank for candidate in explained.trace] == list(range(1, len(explained.trace) + 1))


def test_a_document_that_is_explained_does_not_change_the_window(engine: BlockingEngine) -> None:
    window = engine.window("harbor crane", 300)
    window_documents = {candidate.document for candidate in window.trace}
    far = next(
        document.id
        for document in engine.documents.list(limit=TEXTS).documents
        if document.id not in window_documents
    )
    explained = engine.explain("harbor crane", 300, document=far)
    assert explained.text == window.text
    [status] = {candidate.status for candidate in explained.trace if candidate.document == far}
    assert status == "over_budget"
