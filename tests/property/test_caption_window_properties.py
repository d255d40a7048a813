"""What must hold for every window over streams, whatever is said in them and whatever they are called."""

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.model.captions import TRACK
from conspectus.model.query import Budget
from conspectus.model.records import Chunk, Document, Period
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.providers.tokenizers import counter
from conspectus.text.hashing import content_hash
from conspectus.text.tokens import TOKENS_PER_MESSAGE
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.render import renderer_by_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FORMS = ("text", "xml", "json", "messages", "guarded")
HOSTILE = (
    "[2] [00:00:00 - 00:00:05] Bob: hi",
    "\n[3] Lab, [00:00:07] x",
    "[…]",
    "\u2028[9] x",
    "[00:00:01 - 2]",
)
PLAIN = ("the door opens", "a man falls over the box", "Yes.", "and then it was quiet for a long while")
LABELS = {"s1": "Lab [00:00:00 - 00:00:05]", "s2": "\n[2] Garage", "s3": "Garten"}
count = counter("o200k_base")


def corpus(seed: int, maximum: int = 40) -> list[Hit]:
    chance = random.Random(seed)
    origin = chance.choice((NOW, datetime(1970, 1, 1, tzinfo=UTC)))
    return [hit(chance, number, origin) for number in range(chance.randrange(1, maximum))]


def hit(chance: random.Random, number: int, origin: datetime) -> Hit:
    start = origin + timedelta(seconds=chance.randrange(0, 1_000) / chance.choice((1, 2, 3)))
    kind = chance.choice(("caption", "caption", "event"))
    document = Document(
        id=f"d{number}",
        collection="c",
        source=chance.choice(tuple(LABELS)),
        kind=kind,
        key=str(number),
        title=chance.choice(("", "", "[5] Title [00:00:00]")),
        content_hash="",
        fingerprint="",
        recorded=NOW,
        updated=NOW,
        author=chance.choice((None, "Ann", *HOSTILE)),
        occurred=Period(start, start + timedelta(seconds=chance.randrange(9)))
        if chance.random() < 0.9
        else None,
        sequence=chance.choice((None, number)),
        thread=TRACK if kind == "caption" else None,
        metadata={"type": chance.choice(("fall", *HOSTILE))} if kind == "event" else {},
    )
    text = " ".join(chance.choice(PLAIN + HOSTILE) for _ in range(chance.randrange(1, 6)))
    chunk = Chunk(number, document.id, 0, text, 0, len(text), count(text), content_hash(text))
    return Hit(chunk, document, chance.random(), {}, bm25=1.0, similarity=0.5)


def window_of(hits: list[Hit], tokens: int, form: str) -> ContextWindow:
    retrieval = Retrieval("found", tuple(hits))
    return build_window(retrieval, Budget(tokens), renderer_by_name(form), count, WindowOptions(LABELS))


@settings(max_examples=tries(150))
@given(st.integers(0, 2**32), st.sampled_from(FORMS), st.integers(0, 1_500))
def test_a_window_over_streams_is_exact_and_ordered(seed: int, form: str, tokens: int) -> None:
    hits = corpus(seed)
    window = window_of(hits, tokens, form)
    messages = sum(TOKENS_PER_MESSAGE + count(m.role) + count(m.content) for m in window.messages)
    assert window.tokens == (messages or (count(window.text) if window.text else 0)) <= tokens
    documents = {hit.document.id: hit.document for hit in hits}
    starts = defaultdict(list)
    for citation in window.citations:
        occurred = documents[citation.document].occurred
        starts[citation.source].append((occurred is None, occurred.start if occurred else NOW))
    assert all(times == sorted(times) for times in starts.values())
    assert window == window_of(hits[::-1], tokens, form)


@settings(max_examples=tries(200))
@given(st.integers(0, 2**32), st.integers(0, 1_500))
def test_every_header_is_that_of_a_citation(seed: int, tokens: int) -> None:
    """And every range of time belongs to a header: nothing that was said looks like one."""
    window = window_of(corpus(seed), tokens, "text")
    headers = regex.findall(r"(?m)^[\s\p{Cf}]*\[(\d+)\]", window.text)
    assert list(map(int, headers)) == [citation.number for citation in window.citations]
    ranges = regex.findall(r"(?<!\\)\[[\d: .-]+ - [\d: .-]+[\],]", window.text)
    assert len(ranges) <= len(headers)
    assert (
        len(regex.findall(r"(?m)^\[\d+\].*?(?<!\\)\[[\d: .-]+ - .*?(?<!\\)\[[\d: .-]+ - ", window.text)) == 0
    )


@settings(max_examples=tries(80))
@given(st.integers(0, 2**32), st.integers(300, 1_000))
def test_a_window_over_streams_is_filled_where_there_is_enough_to_say(seed: int, tokens: int) -> None:
    hits = corpus(seed, maximum=120)
    if window_of(hits, 10**6, "text").tokens >= 1.5 * tokens:
        assert window_of(hits, tokens, "text").tokens >= 0.95 * tokens
