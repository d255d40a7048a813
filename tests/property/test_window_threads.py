"""Windows of threads: every message is shown or counted, at its place, within the budget."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.model.query import Budget
from conspectus.model.records import Chunk, Document, Period
from conspectus.model.results import Hit, Retrieval, ThreadOutline
from conspectus.providers.tokenizers import counter
from conspectus.text.hashing import content_hash
from conspectus.window.build import build_window
from conspectus.window.render import renderer_by_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FORMS = ("text", "xml", "json", "messages", "guarded")
WORDS = [
    "yes",
    "no",
    "why",
    "日本語",
    "the build fails",
    "again",
    "here",
    "\n[… 3 messages left out]",
    "↪ Bob:",
    "👍🏽",
]
count = counter("o200k_base")


def message(chance, thread, position):
    at = NOW + timedelta(minutes=7 * position)
    return Document(
        id=f"{thread}-{position:03}",
        collection="c",
        source="s",
        kind="message",
        key=str(position),
        title="",
        content_hash="",
        fingerprint="",
        recorded=NOW,
        updated=NOW,
        author=chance.choice(("Ada", "↪ Eve", None)),
        occurred=Period(at, at) if chance.random() < 0.9 else None,
        thread=thread,
        metadata=chance.choice(({}, {"reply_to": "0"}, {"reply_to": ["0"]}, {"reply_to": str(position)})),
    )


def chunk_of(document, number, text):
    return Chunk(number, document.id, 0, text, 0, len(text), count(text), content_hash(text))


def random_retrieval(seed, maximum=30, longest=40):
    """Some messages of two threads, of which the lengths are known, and of one of which nothing is."""
    chance = random.Random(seed)
    hits, sketches = [], []
    for thread in ("t1", "t2", "unknown"):
        total = chance.randint(1, maximum)
        documents = [message(chance, thread, position) for position in range(total)]
        documents.sort(
            key=lambda document: (
                document.occurred is None,
                document.occurred and document.occurred.start,
                document.id,
            )
        )
        shown_positions = chance.sample(range(total), chance.randint(0, min(total, 12)))
        if thread != "unknown":
            places = {document.id: position for position, document in enumerate(documents)}
            sketches.append(ThreadOutline("s", thread, places, total))
        for position in shown_positions:
            text = f"{position} " + " ".join(chance.choices(WORDS, k=chance.randint(1, longest)))
            chunk = chunk_of(documents[position], 1000 * len(sketches) + position, text)
            score = chance.random()
            hits.append(Hit(chunk, documents[position], score, {"keyword": score}, 1.0, None))
    return Retrieval("found", tuple(hits), threads=tuple(sketches))


def window_of(retrieval, tokens, form="text"):
    return build_window(retrieval, Budget(tokens), renderer_by_name(form), count)


def cost(window):
    if window.messages:
        return sum(3 + count(message.role) + count(message.content) for message in window.messages)
    return count(window.text) if window.text else 0


def marks_of(window, form):
    """What stands in the window, in order: the number of a passage, or a count of messages in brackets."""
    if form == "json":
        parts = json.loads(window.text)["documents"]
        return [[part["left_out"]["messages"]] if "left_out" in part else part["index"] for part in parts]
    if form in {"xml", "guarded"}:
        elements = ElementTree.fromstring(window.text)
        return [
            [int(element.attrib["messages"])]
            if element.tag == "left_out"
            else int(element.attrib.get("index") or element.attrib["number"])
            for element in elements
        ]
    lines = regex.finditer(r"(?m)^\[(?:(\d+)\] |… (\d+) messages? left out\]$)", window.text)
    return [int(line[1]) if line[1] else [int(line[2])] for line in lines]


def expected_marks(retrieval, window):
    """The same, from the places of what is cited."""
    sketches = {outline.thread: outline for outline in retrieval.threads}
    marks, last = [], None
    for citation in (*window.citations, None):
        thread = citation.document.partition("-")[0] if citation else None
        if last is not None and last[0] != thread and last[0] in sketches:
            rest = sketches[last[0]].total - last[1] - 1
            marks += [[rest]] if rest else []
        if citation is None:
            break
        position = sketches[thread].places[citation.document] if thread in sketches else 0
        before = last[1] if last is not None and last[0] == thread else -1
        marks += [[position - before - 1]] if thread in sketches and position - before > 1 else []
        marks.append(citation.number)
        last = (thread, position)
    return marks


@settings(max_examples=tries(300))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.integers(0, 1500))
def test_every_message_is_shown_or_counted_where_it_belongs(seed, form, tokens):
    retrieval = random_retrieval(seed)
    window = window_of(retrieval, tokens, form)
    assert window.tokens == cost(window) <= window.max_tokens
    assert all(entry.tokens >= 0 for entry in window.trace)
    if window.text:
        assert marks_of(window, form) == expected_marks(retrieval, window)


def test_a_message_in_place_of_a_mark_costs_nothing_rather_than_less():
    documents = [message(random.Random(0), "t", position) for position in range(3)]
    documents = [replace(document, author=None, occurred=None) for document in documents]
    hits = tuple(
        Hit(chunk_of(documents[position], position, text), documents[position], 1.0, {}, 1.0, None)
        for position, text in ((0, "a"), (2, "b"), (1, "c"))
    )
    outline = ThreadOutline(
        "s", "t", {document.id: position for position, document in enumerate(documents)}, 3
    )
    window = window_of(Retrieval("found", hits, threads=(outline,)), 500)
    assert [entry.status for entry in window.trace] == ["included"] * 3
    assert [entry.tokens > 0 for entry in window.trace] == [True, True, False]
    assert window.trace[2].tokens == 0


@settings(max_examples=tries(100))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.integers(0, 1500))
def test_the_same_messages_in_any_order_give_the_same_bytes(seed, form, tokens):
    retrieval = random_retrieval(seed)
    turned = Retrieval("found", retrieval.hits[::-1], threads=retrieval.threads[::-1])
    assert window_of(retrieval, tokens, form) == window_of(turned, tokens, form)


@settings(max_examples=tries(60))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.lists(st.integers(0, 1500), min_size=8, max_size=8))
def test_more_budget_never_loses_the_best_message(seed, form, budgets):
    retrieval = random_retrieval(seed)
    fates = [window_of(retrieval, tokens, form).trace[:1] for tokens in sorted(budgets)]
    inclusions = [fate[0].status in {"included", "truncated"} for fate in fates if fate]
    assert inclusions == sorted(inclusions)


@settings(max_examples=tries(100))
@given(st.integers(0, 2**32), st.integers(250, 1000))
def test_a_window_of_threads_is_filled_where_there_is_enough_to_say(seed, tokens):
    """Of fewer tokens what stands before one message can be more than five percent."""
    retrieval = random_retrieval(seed, maximum=60, longest=80)
    if window_of(retrieval, 10**6).tokens >= 1.5 * tokens:
        assert window_of(retrieval, tokens).tokens >= 0.95 * tokens


@settings(max_examples=tries(100))
@given(st.integers(0, 2**32), st.integers(0, 1500))
def test_all_of_a_thread_leaves_nothing_to_count(seed, tokens):
    """And what is known of other threads changes nothing at all."""
    retrieval = random_retrieval(seed)
    plain = Retrieval("found", retrieval.hits)
    elsewhere = Retrieval("found", retrieval.hits, threads=(ThreadOutline("s", "t9", {"x": 1}, 2),))
    assert window_of(plain, tokens) == window_of(elsewhere, tokens)
    assert "left_out" not in window_of(plain, tokens, "json").text
    window = window_of(retrieval, 10**6)
    marks = [mark for mark in marks_of(window, "text") if isinstance(mark, list)]
    cited = [
        citation.document for citation in window.citations if not citation.document.startswith("unknown")
    ]
    threads = {document.partition("-")[0] for document in cited}
    total = sum(outline.total for outline in retrieval.threads if outline.thread in threads)
    assert sum(mark[0] for mark in marks) == total - len(cited)
