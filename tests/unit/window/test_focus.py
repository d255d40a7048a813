"""Passages that do not fit are cut around what matched the question."""

import pytest
from tests.unit.window.test_packer import SENTENCE, count, document, hit, window

import conspectus
from conspectus.model.records import NewDocument
from conspectus.model.results import QueryTerms
from conspectus.settings import Settings
from conspectus.text.graphemes import next_border
from conspectus.text.positions import heading_at
from conspectus.window.focus import Focus, Sentence, run_around_best

FACTS = {
    "Opening hours": (
        "when does it open",
        "The reading room opens at nine on weekdays, on Sundays at eleven.",
    ),
    "Parking": ("where can visitors park", "Visitors park free of charge behind the old brewery."),
    "Lost keys": ("who replaces lost keys", "Lost keys are replaced by the janitor for twelve euros."),
    "Printing": ("how much may I print", "Members may print forty pages a month on the ground floor."),
    "Wireless network": (
        "what is the wireless password",
        "The wireless password hangs beside the main desk.",
    ),
    "Events": ("when is the book fair", "The book fair takes place on the second Saturday of May."),
}
PAGE = "# The town library\n\n" + "\n\n".join(f"## {name}\n\n{fact}" for name, (_, fact) in FACTS.items())
NEEDLE = "The violet lighthouse was built by Gudrun."


def found(text, *words, tokens, form="text", **fields):
    """The window over one hit, asked with words that have the same weight."""
    terms = {"c": QueryTerms(None, dict.fromkeys(words, 1.0))}
    return window([hit(document("d", **fields), text, 0.9)], tokens, form, terms=terms)


def test_weights_are_added_in_the_order_of_the_text():
    large = {"alpha": 1e16, "beta": -1e16, "gamma": 1.0}
    names = [[f"{name}{number}" for name in large] for number in range(20)]
    weights = {name: large[name.rstrip("0123456789")] for each in names for name in each}
    text = " ".join(f"{' '.join(each).capitalize()} meet." for each in names)
    found = Focus({"c": QueryTerms(None, weights)}).sentences(hit("d", text, 0.9))
    assert [each.weight for each in found] == [1.0, *[1.25] * 19]


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
def test_the_middle_of_a_passage_is_shown_with_a_mark_on_each_side(form):
    text = SENTENCE * 20 + NEEDLE + " " + SENTENCE * 20
    made = found(text, "lighthouse", tokens=150, form=form)
    [cited] = made.citations
    shown = text[cited.start : cited.end]
    assert NEEDLE in shown
    assert f"[…] {shown} […]" in made.text
    assert made.tokens <= 150
    assert made.trace[0].status == "truncated"
    assert made.trace[0].reason == f"in [1], cut to the room left: {len(shown)} of {len(text)} characters"


@pytest.mark.parametrize("before", [0, 1, 40])
@pytest.mark.parametrize("behind", [0, 1, 40])
@pytest.mark.parametrize("tokens", [40, 100, 250, 400])
def test_what_matched_is_shown_wherever_it_stands_and_the_room_is_used(before, behind, tokens):
    text = SENTENCE * before + NEEDLE + " " + SENTENCE * behind
    made = found(text, "violet", "gudrun", tokens=tokens)
    assert NEEDLE in made.text
    assert made.tokens <= tokens
    assert made.text.startswith("[1] d\n[…] ") == (made.citations[0].start > 0)
    if made.trace[0].status == "truncated" and tokens >= 100:
        assert made.tokens >= 0.9 * tokens


def test_without_a_match_the_beginning_is_shown():
    text = f"{NEEDLE} {SENTENCE * 40}"
    assert found(text, "submarine", tokens=80).text.startswith(f"[1] d\n{NEEDLE}")


@pytest.mark.parametrize("unit", ["x", "👨‍👩‍👧‍👦", "漢", "e\u0301", "\U0001f1e9\U0001f1ea"])
def test_a_beginning_that_is_cut_off_never_splits_a_grapheme(unit):
    text = unit * (20_000 // len(unit)) + f"\n\n{NEEDLE}"
    made = found(text, "lighthouse", tokens=300)
    assert made.text.endswith(NEEDLE)
    assert 285 <= made.tokens <= 300
    assert made.citations[0].start % len(unit) == 0


def test_the_heading_of_a_part_is_that_of_its_own_section():
    made = found(PAGE, "print", "forti", "forty", tokens=40, syntax="markdown")
    assert FACTS["Printing"][1] in made.text
    assert made.citations[0].heading == "The town library > Printing"


def test_a_neighbor_in_the_same_section_comes_before_one_with_more_weight_in_another():
    rows = [(0.0, 0), (1.0, 0), (9.0, 1), (0.0, 1), (5.0, 2)]
    made = [Sentence(place, place + 1, weight, section) for place, (weight, section) in enumerate(rows)]
    runs = [run_around_best(made, [10] * 5, tokens) for tokens in (5, 10, 20, 30, 40, 50)]
    assert runs == [(2, 2), (2, 2), (2, 3), (2, 4), (1, 4), (0, 4)]


@pytest.mark.parametrize("blank", ["\n", " ", "\t", "\u00a0", "\u3000"])
@pytest.mark.parametrize("tokens", [1, 10, 40, 200])
def test_a_chunk_of_white_space_alone_is_left_out_of_a_window(blank, tokens):
    """Stores of earlier versions have such chunks."""
    terms = {"c": QueryTerms(None, {"walrus": 1.0})}
    blanks = hit(document("d", title="walrus"), blank * 2000, 0.9)
    assert window([blanks], tokens, "text", terms=terms).tokens <= tokens
    assert Focus(terms).sentences(blanks) == []


def test_the_next_border_is_the_end_of_the_cluster_that_would_be_cut():
    assert [next_border("ae\u0301b", place) for place in range(5)] == [0, 1, 3, 3, 4]


@pytest.mark.parametrize(
    ("heading", "text", "expected"),
    [
        ("Top > A", "## A\n\na\n\n### B\n\nb\n\n## C\n\nc", ["Top > A", "Top > A > B", "Top > C"]),
        (None, "Intro.\n\n# A\n\na", [None, "A"]),
        ("Elsewhere", "Intro.\n\n## A\n\na", ["Elsewhere", "A"]),
    ],
)
def test_headings_inside_a_chunk_continue_its_path(heading, text, expected):
    of = hit("d", text, 1.0).chunk
    chunk = type(of)(of.id, of.document, 0, text, 0, len(text), 9, "", heading=heading)
    places = [0, *(place + 1 for place, _ in enumerate(text) if text[place : place + 2] == "\n#")]
    paths = [heading_at(chunk, "markdown", place) for place in places]
    assert list(dict.fromkeys(paths)) == expected


@pytest.mark.parametrize(("tokens", "least"), [(60, 5), (100, 6), (200, 6)])
async def test_a_page_of_six_sections_answers_in_small_windows(tmp_path, tokens, least):
    new = NewDocument(PAGE, title="The town library", key="library.md", syntax="markdown")
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.add(new)
        windows = [(await engine.window(query, tokens), fact) for query, fact in FACTS.values()]
    assert sum(fact in made.text for made, fact in windows) >= least
    for made, _ in windows:
        assert made.tokens == count(made.text) <= tokens
        assert all(PAGE[cited.start : cited.end] in made.text for cited in made.citations)


async def test_without_a_common_word_the_nearest_sentence_is_shown(tmp_path):
    text = f"{SENTENCE * 6}Physicians recommend sleeping eight hours. {SENTENCE * 6}"
    async with conspectus.open(tmp_path) as engine:
        await engine.add(NewDocument(text, title="Notes"), wait=True)
        made = await engine.window("doctor's advice about rest at night", 60)
        [cited] = made.citations
    assert "Physicians recommend sleeping eight hours." in text[cited.start : cited.end]
    assert made.tokens <= 60


def test_sentences_behind_the_compared_ones_are_cut_off_like_others():
    of = hit("d", SENTENCE * 80, 0.9)
    terms, nearest = {"c": QueryTerms(None, {})}, {of.chunk.id: [0.1] * 9 + [0.9]}
    made = window([of], 100, terms=terms, nearest=nearest)
    [cited] = made.citations
    assert cited.start <= 9 * len(SENTENCE) < cited.end < 20 * len(SENTENCE)
    assert 90 <= made.tokens <= 100
