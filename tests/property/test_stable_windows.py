"""What must hold for windows that begin with a previous one, whatever the state says that a caller gives."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_window_properties import FORMS, Corpus, cost, count, hit, window_of
from tests.repetitions import tries

from conspectus.errors import InvalidInput
from conspectus.model.query import Budget
from conspectus.model.records import StoredChunk
from conspectus.model.results import Retrieval
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.render import renderer_by_name
from conspectus.window.stable import MAX_CHUNKS, previous_of

STATES = st.from_regex(r"[0-9a-f]{12}:[0-9]{1,2}(\.[0-9]{1,4}\.[0-9]{1,4})?(,1[0-9]{2})?", fullmatch=True)
SEEDS, TOKENS = st.integers(0, 2**32), st.integers(0, 2500)


def build_next_window(before, stored, hits, form, *, hidden=frozenset(), parts=False):
    """The next window after a state: `stored` may be read, of which a filter leaves out `hidden`."""
    state, tokens = before
    chunks = [StoredChunk(hit.chunk, hit.document) for hit in stored]
    previous = previous_of(state)
    named = [chunk for chunk in chunks if chunk.chunk.id in previous.chunks]
    before = previous.with_chunks(named, lambda chunk: chunk.chunk.id not in hidden, lambda hit: hit)
    options = WindowOptions(parts=parts, previous=before)
    ranked = Retrieval("found" if hits else "no_match", tuple(hits))
    return build_window(ranked, Budget(tokens), renderer_by_name(form), count, options)


def rerank_some(hits, chance):
    """Some of the hits, ranked anew."""
    hits_left = chance.sample(hits, chance.randint(0, len(hits)))
    return [hit(ranked.document, ranked.chunk, chance.random()) for ranked in hits_left]


def shown_chunks(window):
    return {chunk for citation in window.citations for chunk in citation.chunks}


def check_window(window, before, form):
    """Everything that holds for a window after another one."""
    assert window.tokens == cost(window) <= window.max_tokens
    assert [citation.number for citation in window.citations] == list(range(1, len(window.citations) + 1))
    assert [candidate.rank for candidate in window.trace] == list(range(1, len(window.trace) + 1))
    inside = {candidate.chunk for candidate in window.trace if candidate.status in {"included", "truncated"}}
    assert shown_chunks(window) == inside
    plan = window.cache_plan
    stable = window.text[: plan.stable_characters]
    assert before.text.startswith(stable.removesuffix(renderer_by_name(form).after))
    assert plan.stable_bytes == len(stable.encode("utf-8", "surrogatepass"))
    assert plan.stable_tokens == (count(stable) if stable else 0)


@settings(max_examples=tries(150))
@given(SEEDS, st.sampled_from(FORMS), TOKENS, TOKENS)
def test_a_window_begins_with_the_previous_one(seed, form, tokens, later):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=1200).hits(14)
    before = window_of(rerank_some(stored, chance), tokens, form)
    for _ in range(3):
        window = build_next_window((before.state, later), stored, rerank_some(stored, chance), form)
        check_window(window, before, form)
        if not window.cache_plan.breaks:
            assert window.text.startswith(before.text.removesuffix(renderer_by_name(form).after))
        before = window


@settings(max_examples=tries(150))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_what_was_deleted_or_revoked_or_filtered_goes_at_once(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before = window_of(stored, tokens, form)
    gone = {hit.chunk.id for hit in stored if chance.random() < 0.3}
    hidden = frozenset(hit.chunk.id for hit in stored if chance.random() < 0.2) - gone
    left = [hit for hit in stored if hit.chunk.id not in gone]
    hits = [hit for hit in left if hit.chunk.id not in hidden]
    window = build_next_window((before.state, tokens), left, rerank_some(hits, chance), form, hidden=hidden)
    check_window(window, before, form)
    assert shown_chunks(window).isdisjoint(gone | hidden)
    why = {cache_break.chunk: cache_break.reason for cache_break in window.cache_plan.breaks}
    assert {chunk for chunk, reason in why.items() if reason == "not_found"} == shown_chunks(before) & gone
    assert {chunk for chunk, reason in why.items() if reason == "filtered"} == shown_chunks(before) & hidden


@settings(max_examples=tries(150))
@given(SEEDS, st.sampled_from(FORMS), TOKENS, st.lists(STATES, max_size=6), st.integers(0, 14))
def test_a_forged_state_shows_nothing_that_may_not_be_read(seed, form, tokens, groups, readable):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(14)[:readable]
    state = ";".join(groups)
    hits = rerank_some(stored, chance)
    try:
        window = build_next_window((state, tokens), stored, hits, form)
    except InvalidInput as fault:
        assert "twice" in str(fault)
        return
    assert window.tokens == cost(window) <= window.max_tokens
    assert shown_chunks(window) <= {hit.chunk.id for hit in stored}
    assert window.cache_plan.stable_bytes <= len(window.text.encode("utf-8", "surrogatepass"))


def test_a_kept_passage_after_one_without_text_has_its_own_entry():
    empty, passage, hit = Corpus(random.Random(1), longest=600).hits(3)
    state = f"{'0' * 12}:{empty.chunk.id}.0.0;{'0' * 12}:{passage.chunk.id}"
    window = build_next_window((state, 2_500), [empty, passage, hit], [hit], "text")
    assert {candidate.chunk for candidate in window.trace} == {hit.chunk.id, passage.chunk.id}
    assert [
        cache_break.reason for cache_break in window.cache_plan.breaks if cache_break.chunk == empty.chunk.id
    ] == ["stale"]


@settings(max_examples=tries(100))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_the_same_input_gives_the_same_bytes(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before, hits = window_of(stored, tokens, form), rerank_some(stored, chance)
    window = build_next_window((before.state, tokens), stored, hits, form)
    other = build_next_window((before.state, tokens), stored[::-1], hits[::-1], form)
    assert window == other
    assert (
        replace(build_next_window((before.state, tokens), stored, hits, form, parts=True), parts=()) == window
    )


@settings(max_examples=tries(100))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_the_parts_add_up(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before = window_of(rerank_some(stored, chance), tokens, form)
    window = build_next_window((before.state, tokens), stored, rerank_some(stored, chance), form, parts=True)
    inside = [part for part in window.parts if part.start is not None]
    assert sum(part.tokens for part in window.parts) == tokens
    assert sum(part.tokens for part in inside) == window.tokens
    assert "".join(window.text[part.start : part.end] for part in inside) == window.text


@given(st.text())
def test_any_text_is_a_state_or_refused(text):
    try:
        groups = previous_of(text).groups
    except InvalidInput as fault:
        assert fault.field == "previous"
    else:
        assert len(groups) == len([group for group in text.split(";") if group])


def test_a_state_has_an_end():
    many = "0" * 12 + ":" + ",".join(map(str, range(MAX_CHUNKS + 1)))
    with pytest.raises(InvalidInput, match="more than 5,000 chunks"):
        previous_of(many)
