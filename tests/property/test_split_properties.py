import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.text.splitter import SplitOptions, repeated_headers, split
from conspectus.text.tokens import ESTIMATORS

EVAL = Path(os.environ.get("CONSPECTUS_EVAL", Path(__file__).parents[3] / "shared" / "eval"))
FRAGMENTS = [
    *("a", "word ", "Sentence one. ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "=", "-"),
    *("# Heading\n", "\n## Sub\n", "Title\n===\n", "```\n", "~~~\n", "| a | b |\n", "|---|---|\n"),
    *("```python\nx = 1\n\ny = 2\n```\n", "def f():\n    pass\n\n", "\n\nclass A:\n"),
    *("    def m(self):\n", "}\n\nfn main() {\n", "🎉", "👨\u200d👩\u200d👧", "🇩🇪"),
    *("e\u0301\u0302", " \u0301", "\u0915\u094d\u0937\u093f", "한국", "漢字。", "\u0600", "\u200d"),
    *("\x00", "\ud800", "x" * 37),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=40).map("".join)


@st.composite
def options(draw, unit="characters", smallest=1):
    size = draw(st.integers(smallest, 60))
    separators = draw(st.permutations(["\n\n", "\n", ". ", " ", "|", ""]))
    return SplitOptions(
        size=size,
        overlap=draw(st.integers(0, size // 2)),
        unit=unit,
        syntax=draw(st.sampled_from(["plain", "markdown", "code"])),
        separators=tuple(separators[: draw(st.integers(0, 6))]),
    )


def letters(text):
    """A token count that jumps: every run of the same kind of character is one token of at most seven."""
    return len(regex.findall(r"\w{1,7}|\s{1,7}|.", text, regex.DOTALL))


def check_coverage(pieces, text):
    end = 0
    for position, piece in enumerate(pieces):
        assert piece.position == position
        assert piece.text == text[piece.start : piece.end]
        assert piece.start <= end < piece.end
        end = piece.end
    assert end == len(text)


def join_pieces(pieces):
    ends = [0, *(piece.end for piece in pieces)]
    return "".join(piece.text[end - piece.start :] for piece, end in zip(pieces, ends, strict=False))


@settings(max_examples=tries(600), deadline=None)
@given(TEXTS, options())
def test_pieces_cover_the_text_exactly_and_are_never_over_the_size(text, split_options):
    pieces = split(text, split_options)
    check_coverage(pieces, text)
    assert join_pieces(pieces) == text
    headers = repeated_headers(text, split_options)
    assert all(len(headers.header_at(piece.start) + piece.text) <= split_options.size for piece in pieces)
    assert all(later.start > earlier.start for earlier, later in pairwise(pieces))
    overlaps = [earlier.end - later.start for earlier, later in pairwise(pieces)]
    assert all(overlap <= split_options.overlap for overlap in overlaps)
    assert bool(pieces) == bool(text)


@settings(max_examples=tries(400), deadline=None)
@given(TEXTS, options(unit="tokens", smallest=4), st.sampled_from([letters, *ESTIMATORS.values()]))
def test_token_counts_hold_for_the_very_text_of_each_piece(text, split_options, count):
    pieces = split(text, split_options, count)
    check_coverage(pieces, text)
    assert all(count(piece.text) <= split_options.size for piece in pieces)


@settings(max_examples=tries(600), deadline=None)
@given(TEXTS, options())
def test_a_grapheme_cluster_is_cut_only_when_it_alone_is_over_the_size(text, split_options):
    clusters = [match.span() for match in regex.finditer(r"\X", text)]
    small = [(start, end) for start, end in clusters if end - start <= split_options.size]
    for piece in split(text, split_options):
        assert not any(start < piece.start < end or start < piece.end < end for start, end in small)


@given(TEXTS, options())
def test_a_text_that_fits_is_one_piece(text, split_options):
    if 0 < len(text) <= split_options.size:
        assert [piece.text for piece in split(text, split_options)] == [text]


@settings(max_examples=tries(300), deadline=None)
@given(st.lists(st.sampled_from(["p\n", "long line of words\n", "\n", "# h\n"]), max_size=12), options())
def test_fenced_code_that_fits_is_never_cut(lines, split_options):
    block = "```\na = 1\n\nb = 2\n```\n"
    text = "".join(lines) + block + "".join(lines)
    start = len("".join(lines))
    larger_options = SplitOptions(
        max(split_options.size, len(block)), split_options.overlap, syntax="markdown"
    )
    ends = [piece.end for piece in split(text, larger_options)]
    assert not any(start < end < start + len(block) for end in ends)


@settings(max_examples=tries(30), deadline=None)
@given(st.sampled_from([*FRAGMENTS, "a.b c\n"]), st.sampled_from(["plain", "markdown", "code"]))
def test_tokens_are_counted_a_bounded_number_of_times(fragment, syntax):
    text = (fragment * 4000)[:20_000]
    counted = 0

    def count(part):
        nonlocal counted
        counted += len(part)
        return letters(part)

    split(text, SplitOptions(size=50, overlap=5, unit="tokens", syntax=syntax), count)
    assert counted <= 40 * len(text)


@pytest.mark.data
@pytest.mark.parametrize(
    "path", ["commonmark_examples/examples.jsonl", "naughty_strings/blns.json", "naughty_strings/blns.txt"]
)
def test_real_awkward_texts(path):
    file = EVAL / path
    if not file.exists():
        pytest.skip(f"evaluation data not found: {file}")
    content = file.read_text(encoding="utf-8")
    texts = [content]
    if path.endswith("jsonl"):
        texts += [json.loads(line)["markdown"] for line in content.split("\n") if line]
    elif path.endswith("json"):
        texts += json.loads(content)
    assert len(texts) == 1 or len(texts) > 400
    for text in texts:
        for size, overlap in ((1, 0), (7, 3), (40, 10), (2000, 200)):
            for syntax in ("plain", "markdown", "code"):
                pieces = split(text, SplitOptions(size, overlap, syntax=syntax))
                check_coverage(pieces, text) if text else None
                assert all(len(piece.text) <= size for piece in pieces)
