"""What holds for the names of any text."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.test_entity_linking import build_mention, build_node

from conspectus.graph.entity_linking import THRESHOLD, Surroundings, link
from conspectus.graph.entity_rules import names_in
from conspectus.graph.gazetteer import Gazetteer
from conspectus.text.name_keys import key_of, uri_of

SAID = "Ann Smith of the The art start New York Dr. U.S. A b. Inc. May 2012 3.5 's and - , . x_y f() a@b.org"
WORDS = [*SAID.split(), '"', "\n", "İ", "é", "東京"]
TEXTS = st.one_of(
    st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join), st.lists(st.sampled_from(WORDS)).map("".join)
)
KNOWN = Gazetteer(
    {word: [word] for word in ("Ann", "Ann Smith", "art", "New York", "The Who", "C++", "東京")}
)


@given(TEXTS)
def test_a_key_is_its_own_key(name):
    assert key_of(key_of(name)) == key_of(name)


@given(TEXTS)
def test_spans_lie_in_the_text_in_order_without_overlaps(text):
    end = 0
    for span in names_in(text, KNOWN, with_numbers=True):
        assert end <= span.start < span.end <= len(text)
        assert (span.text, span.key) == (text[span.start : span.end], key_of(span.text))
        assert span.key and span.type and 0 < span.score <= 1
        end = span.end


@given(TEXTS)
def test_the_same_text_has_the_same_names(text):
    assert names_in(text, KNOWN) == names_in(text, KNOWN)


@given(TEXTS, TEXTS)
def test_known_names_of_a_text_are_those_of_its_parts(left, right):
    gap = "\n.\n"
    spans = KNOWN.find(left + gap + right)
    moved = [(span.start, span.end) for span in KNOWN.find(left)]
    moved += [(span.start + len(left + gap), span.end + len(left + gap)) for span in KNOWN.find(right)]
    assert [(span.start, span.end) for span in spans] == moved


@given(TEXTS, st.text("Ann Smithjo", min_size=1))
def test_people_are_linked_by_their_whole_names_only(text, name):
    person = build_node("someone", name or "x")
    linked = link(build_mention(text), [person], Surroundings())
    if linked.node is not None:
        assert linked.candidates[0].score >= THRESHOLD
        assert key_of(text).split()[-1][:1] == key_of(name).split()[-1][:1]


@given(st.lists(TEXTS, unique=True, min_size=2, max_size=2), TEXTS)
def test_other_ids_have_other_addresses(ids, name):
    assert uri_of(name, "t", id=ids[0]) != uri_of(name, "t", id=ids[1])
