from itertools import pairwise

import pytest

from conspectus.errors import InvalidInput
from conspectus.text.splitter import SplitOptions, TextSpan, join_blank_pieces, split
from conspectus.text.tokens import ESTIMATORS


def split_texts(source, **options):
    return [piece.text for piece in split(source, SplitOptions(**options))]


def test_empty_text_has_no_pieces():
    assert split("", SplitOptions()) == []


def test_a_text_that_fits_is_one_piece_at_position_zero():
    assert split("Hello world", SplitOptions()) == [TextSpan(0, 0, 11, "Hello world")]


def test_white_space_is_text_like_any_other():
    assert split_texts(" \n\n ") == [" \n\n "]


def test_an_unbroken_run_is_cut_at_the_size():
    pieces = split_texts("x" * 5000, size=200, overlap=0)
    assert {len(piece) for piece in pieces} == {200}
    assert len(pieces) == 25


def test_a_custom_separator():
    assert split_texts("part1|part2|part3", size=6, overlap=0, separators=("|",)) == [
        "part1|",
        "part2|",
        "part3",
    ]


def test_emoji_are_counted_as_code_points_and_cut_at_the_space():
    assert split_texts("🎉🎉 🎉🎉", size=3, overlap=0) == ["🎉🎉 ", "🎉🎉"]


def test_separators_are_tried_in_order():
    source = "One two. Three\nfour five.\n\nSix seven"
    assert split_texts(source, size=30, overlap=0) == ["One two. Three\nfour five.\n\n", "Six seven"]
    assert split_texts(source, size=20, overlap=0) == ["One two. Three\n", "four five.\n\n", "Six seven"]
    assert split_texts(source, size=12, overlap=0)[:2] == ["One two. ", "Three\n"]


def test_an_early_separator_does_not_leave_a_nearly_empty_piece():
    assert split_texts("Hi\n\n" + "word " * 30, size=60, overlap=0)[0].startswith("Hi\n\nword word")


def test_overlap_starts_at_a_word():
    pieces = split_texts("alpha beta gamma delta epsilon zeta", size=17, overlap=8)
    assert pieces == ["alpha beta gamma ", "gamma delta ", "delta epsilon ", "epsilon zeta"]


def test_a_word_that_fits_only_without_overlap_is_kept_whole():
    assert split_texts("ab cd " + "x" * 10, size=10, overlap=5)[-1] == "x" * 10


def test_windows_line_ends_are_never_cut_between():
    pieces = split_texts("one\r\n\r\ntwo\r\n\r\nthree", size=9, overlap=0)
    assert pieces == ["one\r\n\r\n", "two\r\n\r\n", "three"]


@pytest.mark.parametrize("cluster", ["👨\u200d👩\u200d👧\u200d👦", "e" + "\u0301" * 6, "🇩🇪" * 1])
def test_clusters_stay_whole(cluster):
    pieces = split_texts(cluster * 20, size=len(cluster) + 1, overlap=0)
    assert pieces == [cluster] * 20


def test_a_cluster_over_the_size_is_cut_so_that_the_size_holds():
    assert [len(piece) for piece in split_texts("e" + "\u0301" * 24, size=10, overlap=2)] == [10, 10, 5]


def test_flags_are_cut_between_pairs():
    assert all(len(piece) % 2 == 0 for piece in split_texts("🇩🇪🇫🇷" * 50, size=7, overlap=3))


def test_markdown_prefers_headings():
    source = "# One\ntext text text\n\nmore\n\n## Two\ntext\n\ntext"
    assert (
        split_texts(source, size=40, overlap=0, syntax="markdown")[0] == "# One\ntext text text\n\nmore\n\n"
    )


def test_markdown_knows_underlined_headings_and_no_heading_inside_code():
    source = "intro intro\n\nTitle\n=====\nbody\n"
    assert split_texts(source, size=28, overlap=0, syntax="markdown")[0] == "intro intro\n\n"
    fenced = "```\nx = 1\n# not a heading\n```\n\nafter after after"
    assert (
        split_texts(fenced, size=34, overlap=0, syntax="markdown")[0]
        == "```\nx = 1\n# not a heading\n```\n\n"
    )


def test_markdown_keeps_fenced_code_whole_where_it_fits():
    block = "~~~python\na = 1\n\n```\nb = 2\n~~~\n"
    pieces = split_texts("text text text\n" + block + "after", size=len(block), overlap=0, syntax="markdown")
    assert pieces == ["text text text\n", block, "after"]


def test_markdown_cuts_a_long_table_between_rows():
    rows = [f"| row number {number} | some words |\n" for number in range(9)]
    pieces = split_texts("".join(rows), size=70, overlap=0, syntax="markdown", separators=(" ",))
    assert pieces == ["".join(rows[start : start + 2]) for start in range(0, 9, 2)]


def test_an_unclosed_fence_longer_than_the_size_is_cut_at_lines():
    pieces = split_texts("```\n" + "line of code\n" * 20, size=50, overlap=0, syntax="markdown")
    assert all(piece.endswith("\n") for piece in pieces)


def test_code_prefers_blank_lines_before_outer_definitions():
    source = "import os\n\ndef f():\n    a = 1\n\n    b = 2\n\ndef g():\n    c = 3\n\n    d = 4\n"
    pieces = split_texts(source, size=62, overlap=0, syntax="code")
    assert pieces == [source[: source.index("def g")], source[source.index("def g") :]]


def test_code_overlap_starts_at_a_line():
    source = "".join(f"value_{number} = call({number}, {number})\n" for number in range(40))
    assert all(
        piece.startswith("value_") for piece in split_texts(source, size=100, overlap=40, syntax="code")
    )


def test_tokens_of_the_final_text_are_within_the_size():
    source = "Some words, and more words. " * 50
    count = ESTIMATORS["chars4_ceil"]
    pieces = split(source, SplitOptions(size=20, overlap=4, unit="tokens"), count)
    assert max(count(piece.text) for piece in pieces) <= 20
    assert min(count(piece.text) for piece in pieces[:-1]) >= 10


@pytest.mark.parametrize(
    "source",
    ["x", "\n", " ", "e\u0301", " \u0301", "🇩🇪", "a b\r\n", "```\nx\n```\n", "|a|\n", "# a\n", "=\n"],
)
@pytest.mark.parametrize("syntax", ["plain", "markdown", "code"])
def test_a_large_monotonous_text_is_split_within_the_limit(source, syntax):
    text = source * (200_000 // len(source))
    pieces = split(text, SplitOptions(syntax=syntax))
    assert pieces[-1].end == len(text)
    assert max(len(piece.text) for piece in pieces) <= 2000
    assert len(pieces) < len(text) / 500


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("size", {"size": 0}),
        ("overlap", {"size": 10, "overlap": 6}),
        ("overlap", {"overlap": -1}),
        ("unit", {"unit": "bytes"}),
        ("syntax", {"syntax": "latex"}),
    ],
)
def test_options_out_of_range_name_the_field(field, options):
    with pytest.raises(InvalidInput) as caught:
        SplitOptions(**options)
    assert caught.value.field == field


def test_tokens_need_a_counter_and_a_size_of_one_character():
    with pytest.raises(InvalidInput, match="count"):
        split("x", SplitOptions(unit="tokens"))
    with pytest.raises(InvalidInput, match="size"):
        split("🎉", SplitOptions(size=3, overlap=0, unit="tokens"), lambda text: len(text.encode()))


@pytest.mark.parametrize("blank", ["\n", " ", "\t", "\u00a0", "\u3000", "\r\n", "\n "])
@pytest.mark.parametrize("text", ["tide{}walrus", "{}walrus", "tide{}", "{}tide{}walrus{}"])
def test_pieces_of_white_space_alone_are_joined_to_a_neighbor(blank, text):
    source = text.replace("{}", blank * 300)
    pieces = split(source, SplitOptions(size=50, overlap=5))
    assert any(piece.text.isspace() for piece in pieces)
    joined = join_blank_pieces(source, pieces)
    assert not any(piece.text.isspace() for piece in joined)
    assert [piece.position for piece in joined] == list(range(len(joined)))
    assert joined[0].start == 0
    assert joined[-1].end == len(source)
    assert all(later.start <= earlier.end for earlier, later in pairwise(joined))
    assert all(source[piece.start : piece.end] == piece.text for piece in joined)


def test_a_text_of_white_space_alone_is_one_piece():
    source = "\n" * 300
    assert len(join_blank_pieces(source, split(source, SplitOptions(size=50, overlap=5)))) == 1
