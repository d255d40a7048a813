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


def again(before, stored, hits, form, *, hidden=frozenset(), parts=False):
    """The next window after a state: `stored` may be read, of which a filter leaves out `hidden`."""
    state, tokens = before
    found = [StoredChunk(each.chunk, each.document) for each in stored]
    previous = previous_of(state)
    named = [each for each in found if each.chunk.id in previous.chunks]
    before = previous.with_chunks(named, lambda each: each.chunk.id not in hidden, lambda shown: shown)
    options = WindowOptions(parts=parts, previous=before)
    ranked = Retrieval("found" if hits else "no_match", tuple(hits))
    return build_window(ranked, Budget(tokens), renderer_by_name(form), count, options)


def rescored(hits, chance):
    """Some of the hits, ranked anew."""
    chosen = chance.sample(hits, chance.randint(0, len(hits)))
    return [hit(each.document, each.chunk, chance.random()) for each in chosen]


def shown(window):
    return {chunk for citation in window.citations for chunk in citation.chunks}


def check(window, before, form):
    """Everything that holds for a window after another one."""
    assert window.tokens == cost(window) <= window.max_tokens
    assert [each.number for each in window.citations] == list(range(1, len(window.citations) + 1))
    assert [each.rank for each in window.trace] == list(range(1, len(window.trace) + 1))
    inside = {each.chunk for each in window.trace if each.status in {"included", "truncated"}}
    assert shown(window) == inside
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
    before = window_of(rescored(stored, chance), tokens, form)
    for _ in range(3):
        window = again((before.state, later), stored, rescored(stored, chance), form)
        check(window, before, form)
        if not window.cache_plan.breaks:
            assert window.text.startswith(before.text.removesuffix(renderer_by_name(form).after))
        before = window


@settings(max_examples=tries(150))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_what_was_deleted_or_revoked_or_filtered_goes_at_once(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before = window_of(stored, tokens, form)
    gone = {each.chunk.id for each in stored if chance.random() < 0.3}
    hidden = frozenset(each.chunk.id for each in stored if chance.random() < 0.2) - gone
    left = [each for each in stored if each.chunk.id not in gone]
    hits = [each for each in left if each.chunk.id not in hidden]
    window = again((before.state, tokens), left, rescored(hits, chance), form, hidden=hidden)
    check(window, before, form)
    assert shown(window).isdisjoint(gone | hidden)
    why = {each.chunk: each.reason for each in window.cache_plan.breaks}
    assert {each for each, reason in why.items() if reason == "not_found"} == shown(before) & gone
    assert {each for each, reason in why.items() if reason == "filtered"} == shown(before) & hidden


@settings(max_examples=tries(150))
@given(SEEDS, st.sampled_from(FORMS), TOKENS, st.lists(STATES, max_size=6), st.integers(0, 14))
def test_a_forged_state_shows_nothing_that_may_not_be_read(seed, form, tokens, groups, readable):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(14)[:readable]
    state = ";".join(groups)
    hits = rescored(stored, chance)
    try:
        window = again((state, tokens), stored, hits, form)
    except InvalidInput as fault:
        assert "twice" in str(fault)
        return
    assert window.tokens == cost(window) <= window.max_tokens
    assert shown(window) <= {each.chunk.id for each in stored}
    assert window.cache_plan.stable_bytes <= len(window.text.encode("utf-8", "surrogatepass"))


def test_a_kept_passage_after_one_without_text_has_its_own_entry():
    empty, kept, hit = (each for each in Corpus(random.Random(1), longest=600).hits(3))
    state = f"{'0' * 12}:{empty.chunk.id}.0.0;{'0' * 12}:{kept.chunk.id}"
    window = again((state, 2_500), [empty, kept, hit], [hit], "text")
    assert {each.chunk for each in window.trace} == {hit.chunk.id, kept.chunk.id}
    assert [each.reason for each in window.cache_plan.breaks if each.chunk == empty.chunk.id] == ["stale"]


@settings(max_examples=tries(100))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_the_same_input_gives_the_same_bytes(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before, hits = window_of(stored, tokens, form), rescored(stored, chance)
    window = again((before.state, tokens), stored, hits, form)
    other = again((before.state, tokens), stored[::-1], hits[::-1], form)
    assert window == other
    assert replace(again((before.state, tokens), stored, hits, form, parts=True), parts=()) == window


@settings(max_examples=tries(100))
@given(SEEDS, st.sampled_from(FORMS), TOKENS)
def test_the_parts_add_up(seed, form, tokens):
    chance = random.Random(seed)
    stored = Corpus(chance, longest=600).hits(10)
    before = window_of(rescored(stored, chance), tokens, form)
    window = again((before.state, tokens), stored, rescored(stored, chance), form, parts=True)
    inside = [each for each in window.parts if each.start is not None]
    assert sum(each.tokens for each in window.parts) == tokens
    assert sum(each.tokens for each in inside) == window.tokens
    assert "".join(window.text[each.start : each.end] for each in inside) == window.text


@given(st.text())
def test_any_text_is_a_state_or_refused(text):
    try:
        groups = previous_of(text).groups
    except InvalidInput as fault:
        assert fault.field == "previous"
    else:
        assert len(groups) == len([each for each in text.split(";") if each])


def test_a_state_has_an_end():
    many = "0" * 12 + ":" + ",".join(map(str, range(MAX_CHUNKS + 1)))
    with pytest.raises(InvalidInput, match="more than 5,000 chunks"):
        previous_of(many)
