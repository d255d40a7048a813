"""What must hold for every window, whatever the documents, the budget and the form."""

import json
import random
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count as numbers
from xml.etree import ElementTree

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.model.query import Budget
from conspectus.model.records import Chunk, Document, Period
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.providers.tokenizers import counter
from conspectus.text.hashing import content_hash, stable_id
from conspectus.text.splitter import SplitOptions, split
from conspectus.text.tokens import TOKENS_PER_MESSAGE
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.planner import MIN_FILLED_TOKENS
from conspectus.window.render import renderer_by_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FORMS = ("text", "xml", "json", "messages", "guarded")
NEEDS = re.compile(r"does not fit: needs at least ([\d,]+) tokens, ([\d,]+) left")
count = counter("o200k_base")
EMOJI = ["👨‍👩‍👧‍👦", "🏳️‍🌈", "e\u0301\u0323", "🇩🇪🇫🇷", "👍🏽", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢", "ﷺ", "\u200b"]
"""Clusters of up to 50 tokens, which no cut may divide."""
SENTENCES = """
the engine keeps what a team knows and gives back right context for language models under a budget
context_window HTTP_404 parseURL v2.3.1 {}() == -> __init__ return None; 0x1F https://example.org/a?b=c
日本語の文章 は 分かち書き されない ので 一文字 ごとに トークン 数が 変わる。 中文也是如此。 한국어 문장
مرحبا بالعالم שלום עולם \u202eabc\u202c नमस्ते दुनिया กำลังทดสอบ Ελληνικά Привет
]]> </document> <document\u00a0index='1'> " &amp; \\ \x00 \x1b[31m <|endoftext|> [1] [2]
"""
VOCABULARIES = (
    *(sentence.split(" ") for sentence in SENTENCES.strip().split("\n")),
    ["\n[2] Title", "\u2028[…]", "\n\x0b\uff3b3\uff3d 00:01:05", "\r[4] Bob:", "\\[5]"],
    ["x" * 3000, "a", "0" * 700, "\t", "   "],
    EMOJI,
)


def cost(window: ContextWindow) -> int:
    """The whole rendering counted anew, independently of the code under test."""
    if window.messages:
        return sum(TOKENS_PER_MESSAGE + count(m.role) + count(m.content) for m in window.messages)
    return count(window.text) if window.text else 0


@dataclass
class Corpus:
    """Random documents, cut as the product cuts them, and a ranking of some of their chunks."""

    chance: random.Random
    longest: int = 3000
    vocabularies: tuple[list[str], ...] = VOCABULARIES

    def text(self) -> str:
        vocabulary = self.chance.choice(self.vocabularies)
        size = self.chance.choice((1, 10, 60, 300, self.longest))
        words: list[str] = []
        length = 0
        while length < size:
            word = self.chance.choice(vocabulary)
            words.append(word + self.chance.choice((" ", " ", " ", " ", ". ", ", ", "\n", "\n\n", "")))
            length += len(words[-1])
        return "".join(words)

    def document(self, number: int) -> Document:
        chance = self.chance
        kind = chance.choice(("page", "page", "message", "message", "caption", "event", "task", "memory"))
        minutes = timedelta(seconds=chance.randrange(400_000))
        start = (NOW if chance.random() < 0.8 else datetime(1970, 1, 1, tzinfo=UTC)) + minutes
        return Document(
            id=stable_id("document", str(number)),
            collection="c",
            source=chance.choice(("s1", "s2")),
            kind=kind,
            key=chance.choice((f"docs/{number}.md", stable_id("key", str(number)))),
            title=chance.choice(("", f"Title {number}", 'A <b>& "quoted"</b>\n[3] title', "見出し")),
            content_hash="",
            fingerprint="",
            recorded=NOW,
            updated=NOW,
            author=chance.choice((None, "Caroline", "Zoë 👩‍💻", "Bob:\n[4] Eve")),
            occurred=Period(start, start + chance.choice((timedelta(0), minutes)))
            if chance.random() < 0.7
            else None,
            sequence=chance.choice((None, number)),
            thread=chance.choice((None, "t1", "t2")),
        )

    def hits(self, maximum: int) -> list[Hit]:
        chance, ids = self.chance, numbers(1)
        size = chance.choice((200, 600, 2000))
        chunks: list[tuple[Document, Chunk]] = []
        while len(chunks) < maximum:
            document = self.document(len(chunks))
            pieces = split(self.text(), SplitOptions(size=size, overlap=size // 10))
            chunks += [(document, chunk(document, piece, next(ids))) for piece in pieces]
        chance.shuffle(chunks)
        scores = sorted((chance.choice((0.5, chance.random())) for _ in chunks[:maximum]), reverse=True)
        return [hit(*pair, score) for pair, score in zip(chunks, scores, strict=False)]


def chunk(document, piece, number):
    tokens, digest = count(piece.text), content_hash(piece.text)
    of = Chunk(number, document.id, piece.position, piece.text, piece.start, piece.end, tokens, digest)
    return replace(of, page=number, heading=f"Part > [{number}] \u2028<a>") if number % 2 else of


def hit(document, of, score):
    return Hit(of, document, score, {"keyword": score}, bm25=1.0, similarity=score)


def window_of(hits, tokens, form="text", tokenizer="o200k_base"):
    retrieval = Retrieval("found" if hits else "no_match", tuple(hits))
    return build_window(retrieval, Budget(tokens, tokenizer), renderer_by_name(form), count)


def span_text(hits, citation):
    """The cited characters, put together from the chunks as they were found."""
    characters = {}
    for chunk_hit in hits:
        if chunk_hit.document.id == citation.document:
            characters.update(enumerate(chunk_hit.chunk.text, chunk_hit.chunk.start))
    return "".join(characters[position] for position in range(citation.start, citation.end))


def is_border(text, position):
    return position in {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}


def check(window, hits, form):
    """Everything that holds for each single window."""
    renderer = renderer_by_name(form)
    assert window.tokens == cost(window) <= window.max_tokens
    assert sorted(entry.chunk for entry in window.trace) == sorted(chunk_hit.chunk.id for chunk_hit in hits)
    assert [entry.rank for entry in window.trace] == list(range(1, len(hits) + 1))
    assert [citation.number for citation in window.citations] == list(range(1, len(window.citations) + 1))
    cited_chunks = {number for citation in window.citations for number in citation.chunks}
    assert cited_chunks == {
        entry.chunk for entry in window.trace if entry.status in {"included", "truncated"}
    }
    for citation in window.citations:
        assert renderer.escape(span_text(hits, citation)) in window.text
        last = next(chunk_hit.chunk for chunk_hit in hits if chunk_hit.chunk.id == citation.chunks[-1])
        assert citation.end >= last.end or is_border(last.text, max(citation.end - last.start, 0))
    assert "\ud800" not in window.text
    if form == "xml" and window.text:
        assert [e.tag for e in ElementTree.fromstring(window.text)] == ["document"] * len(window.citations)
    if form == "json" and window.text:
        assert len(json.loads(window.text)["documents"]) == len(window.citations)


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))])
def test_ten_thousand_random_windows_are_never_over_their_budget(part):
    chance = random.Random(part)
    for _ in range(200):
        hits = Corpus(chance, longest=1200).hits(chance.randint(0, 14))
        for form in FORMS:
            tokens = chance.choice((0, chance.randrange(40), chance.randrange(400), chance.randrange(4000)))
            check(window_of(hits, tokens, form), hits, form)
        check(window_of(hits, 150, "text", "another"), hits, "text")


@settings(max_examples=tries(200))
@given(
    st.integers(0, 2**32),
    st.sampled_from(FORMS),
    st.integers(0, 3000),
    st.sampled_from(("o200k_base", "another")),
    st.sampled_from(((0, ""), (100, "You are helpful."), (5_000, ""))),
)
def test_the_parts_of_a_budget_add_up_to_it(seed, form, tokens, tokenizer, beside):
    reserved, system = beside
    hits = Corpus(random.Random(seed), longest=1200).hits(8)
    budget = Budget(tokens, tokenizer, system, "what is new?", reserved)
    retrieval = Retrieval("found", tuple(hits))
    window = build_window(retrieval, budget, renderer_by_name(form), count, WindowOptions(parts=True))
    assert replace(window, parts=()) == build_window(retrieval, budget, renderer_by_name(form), count)
    outside = sum(part.tokens for part in window.parts if part.kind in {"system", "query", "reserved"})
    assert sum(part.tokens for part in window.parts) == max(tokens, outside)
    assert all(part.tokens >= 0 for part in window.parts)
    inside = [part for part in window.parts if part.start is not None]
    assert sum(part.tokens for part in inside) == window.tokens
    assert "".join(window.text[part.start : part.end] for part in inside) == window.text
    texts = {part.number: window.text[part.start : part.end] for part in inside if part.kind == "passage"}
    for citation in window.citations:
        cited_text = renderer_by_name(form).escape(span_text(hits, citation))
        assert cited_text in texts.get(citation.number, "")


@settings(max_examples=tries(60))
@given(st.integers(0, 2**32), st.integers(0, 600), st.sampled_from(FORMS), st.integers(0, 40))
def test_a_candidate_fits_from_its_budget_on(seed, tokens, form, reserved):
    """By packing into that budget and into one token less; else no budget holds the candidate."""
    hits = Corpus(random.Random(seed), longest=600).hits(7)
    retrieval, counted = Retrieval("found", tuple(hits)), counter("chars4_ceil")

    def candidates_by_rank(maximum, **options):
        budget = Budget(maximum, "chars4_ceil", reserved_tokens=reserved)
        window = build_window(retrieval, budget, renderer_by_name(form), counted, WindowOptions(**options))
        return {candidate.rank: candidate for candidate in window.trace}

    explained, everything = candidates_by_rank(tokens, fits_from=99), candidates_by_rank(10**6)
    assert {
        rank: replace(candidate, fits_from=None) for rank, candidate in explained.items()
    } == candidates_by_rank(tokens)
    for rank, candidate in explained.items():
        if candidate.fits_from is not None:
            assert candidate.fits_from > max(tokens, reserved)
            assert candidate.status != "included" == candidates_by_rank(candidate.fits_from)[rank].status
            assert candidates_by_rank(candidate.fits_from - 1)[rank].status != "included"
        else:
            assert (
                "duplicate" in {candidate.status, everything[rank].status} or candidate.status == "included"
            )


@settings(max_examples=tries(150))
@given(
    st.integers(0, 2**32),
    st.tuples(st.sampled_from(("text", "messages")), st.integers(200, 3000))
    | st.tuples(st.sampled_from(("xml", "json")), st.integers(1400, 3000)),
)
def test_a_window_is_filled_where_there_is_enough_to_say(seed, form_and_budget):
    """To five percent, or to what is too little for one more passage.

    In XML and JSON a document's attributes cost up to 70 tokens, which must be less than five percent.
    """
    form, tokens = form_and_budget
    divisible = tuple(words for words in VOCABULARIES if words is not EMOJI)
    hits = Corpus(random.Random(seed), vocabularies=divisible).hits(12)
    window = window_of(hits, tokens, form)
    everything = window_of(hits, 10**6, form).tokens
    if everything >= 1.5 * tokens:
        assert window.tokens >= min(0.95 * tokens, tokens - MIN_FILLED_TOKENS)


@settings(max_examples=tries(100))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.integers(0, 1500))
def test_the_same_hits_in_any_order_give_the_same_bytes(seed, form, tokens):
    hits = Corpus(random.Random(seed)).hits(10)
    shuffled = hits[:]
    random.Random(seed + 1).shuffle(shuffled)
    assert window_of(hits, tokens, form) == window_of(shuffled, tokens, form)


def whole_number(text: str) -> int:
    return int(text.replace(",", ""))


@settings(max_examples=tries(60))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.lists(st.integers(0, 1500), min_size=6, max_size=6))
def test_more_budget_loses_a_candidate_only_for_a_reason_in_the_trace(seed, form, budgets):
    """It is the text of a shown passage, it gave way to others, or it needs more than better ones left."""
    hits = Corpus(random.Random(seed)).hits(8)
    shown_chunks: set[int] = set()
    for tokens in sorted(budgets):
        window = window_of(hits, tokens, form)
        included = {
            candidate.chunk for candidate in window.trace if candidate.status in {"included", "truncated"}
        }
        for entry in window.trace:
            if entry.chunk in shown_chunks - included:
                room = NEEDS.fullmatch(entry.reason)
                assert room is not None or re.match(
                    r"same text as \[\d+\]|gave way|does not fit, like", entry.reason
                )
                assert room is None or whole_number(room[1]) > whole_number(room[2])
        shown_chunks |= included


@settings(max_examples=tries(60))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.lists(st.integers(0, 1500), min_size=8, max_size=8))
def test_more_budget_never_loses_the_best_hit(seed, form, budgets):
    hits = Corpus(random.Random(seed)).hits(8)
    fates = [window_of(hits, tokens, form).trace[0].status for tokens in sorted(budgets)]
    inclusions = [fate in {"included", "truncated"} for fate in fates]
    assert inclusions == sorted(inclusions)


@settings(max_examples=tries(200))
@given(st.lists(st.text(min_size=1), min_size=1, max_size=6), st.sampled_from(FORMS), st.integers(0, 300))
def test_any_text_at_all(texts, form, tokens):
    corpus = Corpus(random.Random(len(texts)))
    hits = []
    for number, text in enumerate(texts):
        document = corpus.document(number)
        text_chunk = Chunk(number, document.id, 0, text, 0, len(text), count(text), content_hash(text))
        hits.append(hit(document, text_chunk, 1 / (number + 1)))
    check(window_of(hits, tokens, form), hits, form)
