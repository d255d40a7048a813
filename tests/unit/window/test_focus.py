"""Passages that do not fit are cut around what matched the question."""

import pytest
from tests.unit.window.test_packer import SENTENCE, make_document, make_hit, pack

from conspectus.model.results import QueryTerms
from conspectus.text.graphemes import next_border
from conspectus.text.positions import find_heading
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


def pack_text(text, *words, tokens, form="text", **fields):
    """The window over one hit, asked with words that have the same weight."""
    terms = {"c": QueryTerms(None, dict.fromkeys(words, 1.0))}
    return pack([make_hit(make_document("d", **fields), text, 0.9)], tokens, form, terms=terms)


def test_weights_are_added_in_the_order_of_the_text():
    large = {"alpha": 1e16, "beta": -1e16, "gamma": 1.0}
    names = [[f"{name}{number}" for name in large] for number in range(20)]
    weights = {name: large[name.rstrip("0123456789")] for group in names for name in group}
    text = " ".join(f"{' '.join(name).capitalize()} meet." for name in names)
    sentences = Focus({"c": QueryTerms(None, weights)}).sentences(make_hit("d", text, 0.9))
    assert [sentence.weight for sentence in sentences] == [1.0, *[1.25] * 19]


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
def test_the_middle_of_a_passage_is_shown_with_a_mark_on_each_side(form):
    text = SENTENCE * 20 + NEEDLE + " " + SENTENCE * 20
    packed = pack_text(text, "lighthouse", tokens=150, form=form)
    [citation] = packed.citations
    passage = text[citation.start : citation.end]
    assert NEEDLE in passage
    assert f"[…] {passage} […]" in packed.text
    assert packed.tokens <= 150
    assert packed.trace[0].status == "truncated"
    assert (
        packed.trace[0].reason
        == f"in [1], cut to the room left: {len(passage):,} of {len(text):,} characters"
    )


@pytest.mark.parametrize("before", [0, 1, 40])
@pytest.mark.parametrize("behind", [0, 1, 40])
@pytest.mark.parametrize("tokens", [40, 100, 250, 400])
def test_what_matched_is_shown_wherever_it_stands_and_the_room_is_used(before, behind, tokens):
    text = SENTENCE * before + NEEDLE + " " + SENTENCE * behind
    packed = pack_text(text, "violet", "gudrun", tokens=tokens)
    assert NEEDLE in packed.text
    assert packed.tokens <= tokens
    assert packed.text.startswith("[1] d\n[…] ") == (packed.citations[0].start > 0)
    if packed.trace[0].status == "truncated" and tokens >= 100:
        assert packed.tokens >= 0.9 * tokens


def test_without_a_match_the_beginning_is_shown():
    text = f"{NEEDLE} {SENTENCE * 40}"
    assert pack_text(text, "submarine", tokens=80).text.startswith(f"[1] d\n{NEEDLE}")


@pytest.mark.parametrize("unit", ["x", "👨‍👩‍👧‍👦", "漢", "e\u0301", "\U0001f1e9\U0001f1ea"])
def test_a_beginning_that_is_cut_off_never_splits_a_grapheme(unit):
    text = unit * (20_000 // len(unit)) + f"\n\n{NEEDLE}"
    packed = pack_text(text, "lighthouse", tokens=300)
    assert packed.text.endswith(NEEDLE)
    assert 285 <= packed.tokens <= 300
    assert packed.citations[0].start % len(unit) == 0


def test_the_heading_of_a_part_is_that_of_its_own_section():
    packed = pack_text(PAGE, "print", "forti", "forty", tokens=40, syntax="markdown")
    assert FACTS["Printing"][1] in packed.text
    assert packed.citations[0].heading == "The town library > Printing"


def test_a_neighbor_in_the_same_section_comes_before_one_with_more_weight_in_another():
    rows = [(0.0, 0), (1.0, 0), (9.0, 1), (0.0, 1), (5.0, 2)]
    sentences = [Sentence(start, start + 1, weight, section) for start, (weight, section) in enumerate(rows)]
    runs = [run_around_best(sentences, [10] * 5, tokens) for tokens in (5, 10, 20, 30, 40, 50)]
    assert runs == [(2, 2), (2, 2), (2, 3), (2, 4), (1, 4), (0, 4)]


@pytest.mark.parametrize("blank", ["\n", " ", "\t", "\u00a0", "\u3000"])
@pytest.mark.parametrize("tokens", [1, 10, 40, 200])
def test_a_chunk_of_white_space_alone_is_left_out_of_a_window(blank, tokens):
    """Stores of earlier versions have such chunks."""
    terms = {"c": QueryTerms(None, {"walrus": 1.0})}
    blanks = make_hit(make_document("d", title="walrus"), blank * 2000, 0.9)
    assert pack([blanks], tokens, "text", terms=terms).tokens <= tokens
    assert Focus(terms).sentences(blanks) == []


def test_the_next_border_is_the_end_of_the_cluster_that_would_be_cut():
    assert [next_border("ae\u0301b", position) for position in range(5)] == [0, 1, 3, 3, 4]


@pytest.mark.parametrize(
    ("heading", "text", "expected"),
    [
        ("Top > A", "## A\n\na\n\n### B\n\nb\n\n## C\n\nc", ["Top > A", "Top > A > B", "Top > C"]),
        (None, "Intro.\n\n# A\n\na", [None, "A"]),
        ("Elsewhere", "Intro.\n\n## A\n\na", ["Elsewhere", "A"]),
    ],
)
def test_headings_inside_a_chunk_continue_its_path(heading, text, expected):
    whole_chunk = make_hit("d", text, 1.0).chunk
    chunk = type(whole_chunk)(
        whole_chunk.id, whole_chunk.document, 0, text, 0, len(text), 9, "", heading=heading
    )
    positions = [
        0,
        *(position + 1 for position, _ in enumerate(text) if text[position : position + 2] == "\n#"),
    ]
    paths = [find_heading(chunk, "markdown", position) for position in positions]
    assert list(dict.fromkeys(paths)) == expected


def test_sentences_behind_the_compared_ones_are_cut_off_like_others():
    long_hit = make_hit("d", SENTENCE * 80, 0.9)
    terms, nearest = {"c": QueryTerms(None, {})}, {long_hit.chunk.id: [0.1] * 9 + [0.9]}
    packed = pack([long_hit], 100, terms=terms, nearest=nearest)
    [citation] = packed.citations
    assert citation.start <= 9 * len(SENTENCE) < citation.end < 20 * len(SENTENCE)
    assert 90 <= packed.tokens <= 100
