import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count as numbers

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.query import Budget
from conspectus.model.records import Chunk, Document, Period
from conspectus.model.results import Hit, QueryTerms, Retrieval
from conspectus.providers.tokenizers import counter
from conspectus.text.hashing import content_hash
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.render import renderer_by_name
from conspectus.window.spans import Spans

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDS = numbers(1)
SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "
TEXT = " ".join(f"Sentence number {number} says something of its own." for number in range(60))
count = counter("o200k_base")


def make_document(name, **fields):
    fixed = {"collection": "c", "source": "s", "kind": "page", "key": name, "title": "", "content_hash": ""}
    dates = {"fingerprint": "", "recorded": NOW, "updated": NOW}
    return Document(**{**fixed, **dates, "id": name, **fields})


def make_message(name, minute, **fields):
    start = datetime(2023, 5, 8, 13, 56, tzinfo=UTC) + timedelta(minutes=minute)
    return make_document(
        name, **{"kind": "message", "thread": "t", "occurred": Period(start, start), **fields}
    )


def make_hit(source_document, text, score, *, start=0, similarity=0.9):
    source_document = make_document(source_document) if isinstance(source_document, str) else source_document
    end, tokens, digest = start + len(text), count(text), content_hash(text)
    chunk = Chunk(next(IDS), source_document.id, start, text, start, end, tokens, digest)
    return Hit(chunk, source_document, score, {"keyword": score}, bm25=1.0, similarity=similarity)


def make_part_hit(start, end, score, document_name="d"):
    return make_hit(document_name, TEXT[start:end], score, start=start)


def pack(hits, budget, form="text", below=(), **fields):
    retrieval = Retrieval("found" if hits else "no_match", tuple(hits), tuple(below), **fields)
    budget = Budget(budget) if isinstance(budget, int) else budget
    return build_window(retrieval, budget, renderer_by_name(form), counter(budget.tokenizer))


def statuses(window):
    return [candidate.status for candidate in window.trace]


def test_a_huge_best_hit_is_cut_and_the_small_ones_stay_whole():
    packed = pack(
        [
            make_hit("big", SENTENCE * 80, 0.9),
            make_hit("a", "Small one.", 0.5),
            make_hit("b", "Small two.", 0.4),
        ],
        100,
    )
    assert statuses(packed) == ["truncated", "included", "included"]
    assert "Small one." in packed.text and "Small two." in packed.text
    assert 88 <= packed.tokens == count(packed.text) <= 100


def test_what_does_not_fit_is_skipped_and_the_next_is_tried():
    packed = pack(
        [make_hit("a", SENTENCE, 0.9), make_hit("b", SENTENCE * 5 + "b", 0.8), make_hit("c", "Short.", 0.6)],
        30,
    )
    assert statuses(packed) == ["included", "over_budget", "included"]
    assert packed.trace[1].reason == "does not fit: needs at least 71 tokens, 10 left"
    assert packed.trace[1].tokens == 0 < packed.trace[0].tokens


def test_a_little_worse_but_much_shorter_page_is_considered_first():
    hits = [
        make_hit("a", SENTENCE, 0.9),
        make_hit("b", "One two. " * 100, 0.8),
        make_hit("c", "Three four. " * 30, 0.75),
    ]
    assert statuses(pack(hits, 330)) == ["included", "truncated", "included"]
    spoken = [replace(hit, document=replace(hit.document, kind="message")) for hit in hits]
    assert statuses(pack(spoken, 330)) == ["included", "included", "over_budget"]


def test_a_message_that_is_too_large_leaves_two_thirds_for_the_others():
    texts = (SENTENCE * 30, "One. " * 20, "Two. " * 20)
    pages = [make_hit(str(rank), text, 0.9 - rank / 10) for rank, text in enumerate(texts)]
    messages = [replace(page, document=replace(page.document, kind="message")) for page in pages]
    assert statuses(pack(pages, 200)) == ["truncated", "over_budget", "over_budget"]
    assert statuses(pack(messages, 200)) == ["truncated", "included", "included"]


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
def test_zero_tokens_are_an_empty_window_and_not_a_default(form):
    packed = pack([make_hit("a", "text", 0.9)], 0, form)
    assert (packed.outcome, packed.text, packed.messages, packed.tokens, packed.max_tokens) == (
        "found",
        "",
        (),
        0,
        0,
    )
    assert (statuses(packed), packed.citations) == (["over_budget"], ())
    assert packed.trace[0].reason == "the budget leaves no room"


@pytest.mark.parametrize("fields", [{"max_tokens": -1}, {"max_tokens": 10, "reserved_tokens": -1}])
def test_a_negative_budget_is_refused(fields):
    with pytest.raises(InvalidInput, match="must be at least 0"):
        Budget(**fields)


def test_the_budget_pays_for_what_stands_beside_the_window():
    budget = Budget(100, system="You are \ud800 brief.", query="Why is that so?", reserved_tokens=40)
    packed = pack([make_hit("a", SENTENCE * 40, 0.9)], budget)
    assert packed.max_tokens == 60 - count("You are \ufffd brief.") - count("Why is that so?")
    assert packed.max_tokens * 0.9 <= packed.tokens <= packed.max_tokens
    assert pack([make_hit("a", "text", 0.9)], Budget(10, reserved_tokens=11)).max_tokens == 0


def test_nothing_found_is_nothing_relevant_and_the_trace_says_what_the_floor_kept_out():
    below = [make_hit("a", "low", 0.3, similarity=0.31), make_hit("b", "lower", 0.2, similarity=None)]
    packed = pack(
        [],
        100,
        below=below,
        plan={"min_similarity": "0.40"},
        notices=("partly",),
        timings={"plan": 1.0},
    )
    assert (packed.outcome, packed.text, packed.tokens) == ("no_match", "", 0)
    assert [candidate.reason for candidate in packed.trace] == [
        "similarity 0.31 is below the minimum similarity 0.40",
        "has no similarity below the minimum similarity 0.40",
    ]
    assert (packed.notices, packed.timings) == (("partly",), {"plan": 1.0})


def test_chunks_that_overlap_or_touch_become_one_passage_without_repetition():
    packed = pack(
        [make_part_hit(300, 700, 0.9), make_part_hit(0, 400, 0.8), make_part_hit(700, 990, 0.7)], 1000
    )
    assert packed.text == "[1] d\n" + TEXT[:990].rstrip()
    assert [(c.start, c.end, len(c.chunks)) for c in packed.citations] == [(0, len(TEXT[:990].rstrip()), 3)]


def test_chunks_of_one_document_stand_in_the_order_of_its_text_with_a_gap_between():
    packed = pack(
        [make_part_hit(500, 600, 0.9), make_hit("other", "Between.", 0.8), make_part_hit(0, 100, 0.7)], 1000
    )
    assert packed.text == (
        f"[1] d\n{TEXT[:100].rstrip()}\n[2] […]\n{TEXT[500:600].rstrip()}\n\n[3] other\nBetween."
    )
    assert [candidate.reason for candidate in packed.trace] == ["in [2]", "in [3]", "in [1]"]


def test_a_citation_names_exactly_the_characters_that_are_shown():
    packed = pack([make_hit("d", "\n \n    def f():\n        pass\n\n", 0.9, start=40)], 100)
    assert packed.text == "[1] d\n    def f():\n        pass"
    assert [(c.start, c.end) for c in packed.citations] == [(43, 43 + len("    def f():\n        pass"))]


def test_messages_of_a_thread_stand_together_in_order_and_groups_by_their_best_hit():
    hits = [
        make_hit(make_message("m3", 3, author="Mel", sequence=3), "Third.", 0.5),
        make_hit("page", "A page.", 0.6),
        make_hit(make_message("m1", 1, author="Ann", sequence=1), "First.", 0.9),
        make_hit(make_message("x1", 0, author="Bob", thread="other"), "Elsewhere.", 0.7),
        make_hit(make_message("m2", 9, author="Ann", sequence=2), "Second.", 0.1),
        make_hit(make_message("m0", 2, author="Zed"), "Unnumbered.", 0.05),
    ]
    assert pack(hits, 1000).text == (
        "[1] 2023-05-08 13:57 Ann: First.\n[2] 14:05 Ann: Second.\n[3] 13:59 Mel: Third.\n"
        "[4] 13:58 Zed: Unnumbered.\n\n[5] 2023-05-08 13:56 Bob: Elsewhere.\n\n[6] page\nA page."
    )


def test_captions_of_one_stream_stand_together_without_a_thread_and_messages_do_not():
    hits = [
        make_hit(make_message("c1", 1, kind="caption", thread=None), "one", 0.9),
        make_hit(make_message("m1", 0, thread=None), "alone", 0.8),
        make_hit(make_message("c0", 0, kind="caption", thread=None), "zero", 0.7),
        make_hit(make_message("m0", 0, thread=None), "alone too", 0.6),
    ]
    assert pack(hits, 1000).text == (
        "[1] [2023-05-08 13:56:00] zero\n[2] […] [13:57:00] one\n\n[3] 2023-05-08 13:56: alone\n\n"
        "[4] 2023-05-08 13:56: alone too"
    )


@pytest.mark.parametrize(
    ("second", "status"),
    [
        ("He drinks green tea, every day.", "duplicate"),
        ("drinks \n green\ttea,", "duplicate"),
        ("green", "duplicate"),
        ("gree", "included"),
        ("tea, green", "included"),
        ("drinks green tea, every night", "included"),
        (" \n\t ", "duplicate"),
    ],
)
def test_what_is_already_said_in_the_same_words_is_a_duplicate(second, status):
    packed = pack([make_hit("a", "He drinks green tea, every day.", 0.9), make_hit("b", second, 0.8)], 200)
    assert statuses(packed) == ["included", status]
    reason = "same text as [1]" if second.strip() else "has no visible text"
    assert status == "included" or packed.trace[1].reason == reason


def test_the_same_words_of_two_people_are_two_statements():
    ann, bob = make_message("m1", 0, author="Ann"), make_message("m2", 1, author="Bob")
    again = make_hit(make_message("m3", 2, author="Bob"), "Yes.", 0.7)
    packed = pack([make_hit(ann, "Yes.", 0.9), make_hit(bob, "Yes.", 0.8), again], 200)
    assert statuses(packed) == ["included", "included", "duplicate"]
    assert packed.trace[2].reason == "same text as [2]"


SENTENCES = [f"The {word} of the old harbor is opened by the keeper when a ship comes in." for word in (
    "gate", "bridge", "lock", "crane", "office", "store", "yard", "dock", "chapel", "market", "tower", "well"
)]  # fmt: skip
PAGE = " ".join(SENTENCES)


@pytest.mark.parametrize(
    ("text", "fields", "status"),
    [
        (PAGE.replace("crane", "winch"), {}, "near_duplicate"),
        (" ".join([*SENTENCES[4:], "Ships wait."]), {}, "near_duplicate"),
        (PAGE.replace("a ship", "a boat"), {}, "included"),
        (PAGE.replace("the old harbor", "harbor 2", 1), {}, "included"),
        (" ".join([*SENTENCES[8:], *(f"Ann asked Bo about {n} once." for n in "abc")]), {}, "included"),
        (SENTENCES[0].replace("gate", "door"), {}, "included"),
        (PAGE.replace("crane", "winch"), {"kind": "message", "author": "bo"}, "included"),
    ],
)
def test_nearly_all_of_a_text_in_another_page_is_a_near_duplicate(text, fields, status):
    packed = pack([make_hit("a", PAGE, 0.9), make_hit(make_document("b", **fields), text, 0.5)], 2000)
    assert statuses(packed) == ["included", status]
    if status == "near_duplicate":
        assert packed.trace[1].reason.startswith("nearly the same text as [1]: 9")


def test_a_near_duplicate_is_not_cut_into_the_room_left():
    copy = PAGE.replace("crane", "winch")
    packed = pack(
        [make_hit("a", PAGE, 0.9), make_hit("b", copy, 0.5), make_hit("c", TEXT, 0.4)], count(PAGE) + 100
    )
    assert statuses(packed) == ["included", "near_duplicate", "truncated"]


def test_a_near_duplicate_within_its_own_document_is_shown():
    packed = pack(
        [make_hit("a", PAGE, 0.9), make_hit("a", PAGE.replace("crane", "winch"), 0.5, start=len(PAGE))], 2000
    )
    assert statuses(packed) == ["included", "included"]


def test_a_copy_of_a_hit_that_is_cut_is_a_duplicate_but_not_a_part_of_it():
    big = SENTENCE * 60 + "The very end."
    packed = pack(
        [make_hit("a", big, 0.9), make_hit("copy", big, 0.8), make_hit("part", "The very end.", 0.7)], 150
    )
    assert statuses(packed) == ["truncated", "duplicate", "included"]


def test_a_cut_text_ends_with_a_sentence_and_a_marker_that_is_paid_for():
    packed = pack([make_hit("a", TEXT, 0.9)], 400)
    assert packed.text.endswith("says something of its own. […]")
    assert packed.tokens == count(packed.text) >= 380
    assert (
        packed.trace[0].reason
        == f"in [1], cut to the room left: {packed.citations[0].end:,} of {len(TEXT):,} characters"
    )


def test_a_sentence_is_cut_rather_than_much_of_the_budget_wasted():
    long_sentences = f"{' word' * 180}." * 20
    for tokens in range(300, 3000, 100):
        assert pack([make_hit("a", long_sentences, 0.9)], tokens).tokens >= 0.95 * tokens


def test_a_word_is_cut_rather_than_much_of_the_budget_wasted():
    for tokens in range(200, 2000, 150):
        assert pack([make_hit("a", "漢字 " + "仮名交文" * 3000, 0.9)], tokens).tokens >= 0.95 * tokens


@pytest.mark.parametrize("unit", ["x", "👨‍👩‍👧‍👦", "漢", "e\u0301", "\U0001f1e9\U0001f1ea"])
def test_one_word_of_a_hundred_kilobytes_fills_the_window_and_is_cut_between_graphemes(unit):
    word = unit * (100_000 // len(unit))
    packed = pack([make_hit("a", word, 0.9)], 300)
    assert 285 <= packed.tokens <= 300
    assert packed.citations[0].end % len(unit) == 0
    assert packed.text == f"[1] a\n{word[: packed.citations[0].end]} […]"


def test_too_little_room_for_anything_worth_reading_is_left_empty():
    packed = pack([make_hit("a", SENTENCE * 9, 0.9)], 6)
    assert (packed.text, packed.tokens, statuses(packed)) == ("", 0, ["over_budget"])


def test_a_last_hit_gives_way_where_its_room_cannot_be_filled_otherwise():
    title = "a title that is much too long for the room that is left over after the other hits are in"
    hits = [make_hit("a", SENTENCE * 8, 0.9), make_hit("b", SENTENCE * 4 + "7", 0.8)]
    hits += [make_hit(make_document(f"c{n}", title=title), f"{TEXT} {n}", 0.5) for n in range(3)]
    packed = pack(hits, 200)
    assert packed.tokens >= 190
    assert statuses(packed)[:3] == ["included", "over_budget", "truncated"]
    assert packed.trace[1].reason == "gave way to what fills the window better"


@pytest.mark.parametrize("tokenizer", ["cl100k_base", "chars4_floor", "chars4_min1", "bytes4_min1"])
@pytest.mark.parametrize("tokens", [0, 1, 7, 50, 333, 2000])
def test_every_tokenizer_counts_its_own_tokens(tokenizer, tokens):
    hits = [make_hit(f"d{n}", f"{n}. {TEXT[n * 7 :]}", 1 / (n + 1)) for n in range(9)]
    packed = pack(hits, Budget(tokens, tokenizer))
    assert packed.tokens <= tokens
    assert packed.tokens == (counter(tokenizer)(packed.text) if packed.text else 0)
    assert packed.tokens >= 0.95 * tokens or tokens < 200


def test_a_counter_that_does_not_add_up_cannot_break_the_budget():
    hits = [make_hit(f"d{n}", SENTENCE, 1 / (n + 1)) for n in range(20)]

    def squares(text):
        return (len(text) // 50) ** 2

    packed = build_window(
        Retrieval("found", tuple(hits)), Budget(30, "squares"), renderer_by_name("text"), squares
    )
    assert 0 < packed.tokens == squares(packed.text) <= 30


def test_counting_grows_with_the_window_and_not_with_the_number_of_hits():
    hits = [make_hit(f"d{n}", f"{n} " + TEXT[n % 50 : 400 + n % 50], 1 / (n + 1)) for n in range(3000)]
    counted = []
    renderer, budget = renderer_by_name("text"), Budget(20_000)
    packed = build_window(
        Retrieval("found", tuple(hits)), budget, renderer, lambda t: counted.append(len(t)) or count(t)
    )
    assert packed.tokens >= 19_000
    assert sum(counted) < 6 * len(packed.text)


def test_spans_join_and_say_what_is_new():
    spans = Spans()
    for start, end in ((10, 20), (30, 40), (50, 60), (20, 30)):
        spans.add(start, end)
    assert (spans.starts, spans.ends) == ([10, 50], [40, 60])
    assert [spans.count_uncovered(0, 70), spans.count_uncovered(15, 35), spans.count_uncovered(40, 50)] == [
        30,
        0,
        10,
    ]
    assert [spans.find_cover_end(5), spans.find_cover_end(10), spans.find_cover_end(45)] == [5, 40, 45]


TABLE_HEADER = "| Berth | Fee |\n| --- | --- |\n"
TABLE_ROWS = [f"| Heron-{number} | {1000 + number * 7} |\n" for number in range(1, 151)]
TABLE_TERMS = {"c": QueryTerms("english", {"fee": 1.0, "berth": 1.0, "heron": 0.5, "140": 4.0})}


def make_table_hit(text, start, header=None, score=0.9):
    plain = make_hit(make_document("t", syntax="markdown"), text, score, start=start)
    return replace(plain, chunk=replace(plain.chunk, table_header=header))


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
@pytest.mark.parametrize("is_continued", [False, True])
def test_a_row_of_a_cut_table_stands_below_its_header(form, is_continued):
    rows = "".join(TABLE_ROWS)
    hit = make_table_hit(
        rows if is_continued else TABLE_HEADER + rows, 500, TABLE_HEADER if is_continued else None
    )
    for budget in range(50, 201, 30):
        packed = pack([hit], budget, form, terms=TABLE_TERMS)
        assert packed.tokens <= budget
        if packed.text:
            text = json.loads(packed.text)["documents"][0]["text"] if form == "json" else packed.text
            assert f"{TABLE_HEADER}[…]\n| Heron-1" in text
            assert "| Heron-140 | 1980" in text
            assert text.count(TABLE_HEADER) == 1
    assert packed.text


def test_parts_that_touch_show_the_header_once_and_cite_the_rows_alone():
    first, second = "".join(TABLE_ROWS[:10]), "".join(TABLE_ROWS[10:20])
    hits = [make_table_hit(first, 500, TABLE_HEADER), make_table_hit(second, 500 + len(first), TABLE_HEADER)]
    packed = pack(hits, 2000)
    assert packed.text.count(TABLE_HEADER) == 1
    assert packed.text.endswith(TABLE_HEADER + (first + second).rstrip())
    assert [(cited.start, cited.end) for cited in packed.citations] == [(500, 500 + len(first + second) - 1)]
    apart = pack([hits[0], make_table_hit(second, 900, TABLE_HEADER)], 2000)
    assert apart.text.count(TABLE_HEADER) == 2


def test_a_header_that_is_too_long_for_the_window_is_left_out():
    wide = "| " + " | ".join(f"Column {number}" for number in range(80)) + " |\n|" + " --- |" * 80 + "\n"
    hit = make_table_hit("".join(TABLE_ROWS[130:]), 5000, wide)
    small, large = (pack([hit], budget, terms=TABLE_TERMS) for budget in (100, 1000))
    assert "| Heron-140 | 1980 |" in small.text and "Column 1" not in small.text
    assert wide in large.text
    assert small.tokens <= 100


def test_the_parts_of_a_budget_count_the_header_with_its_rows():
    hit = make_table_hit("".join(TABLE_ROWS), 500, TABLE_HEADER)
    for form in ("text", "json", "guarded"):
        retrieval = Retrieval("found", (hit,), (), terms=TABLE_TERMS)
        window = build_window(
            retrieval, Budget(150), renderer_by_name(form), count, WindowOptions(parts=True)
        )
        shown = [window.text[part.start : part.end] for part in window.parts if part.kind == "passage"]
        assert len(shown) == 1 and shown[0].startswith("| Berth | Fee |") and "Heron-140" in shown[0]


def test_a_table_of_fifteen_columns_has_its_header_in_200_tokens():
    names = (
        "| Berth | " + " | ".join(f"Column {number}" for number in range(14)) + " |\n|" + " --- |" * 15 + "\n"
    )
    rows = [f"| Heron-{row} |" + f" {1000 + row} |" * 14 + "\n" for row in range(120, 160)]
    packed = pack([make_table_hit("".join(rows), 5000, names)], 200, terms=TABLE_TERMS)
    assert names in packed.text and rows[20] in f"{packed.text}\n"
    assert packed.tokens <= 200
