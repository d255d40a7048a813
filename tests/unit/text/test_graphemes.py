"""Borders of grapheme clusters, and cuts between them."""

import regex
from hypothesis import given
from hypothesis import strategies as st

from conspectus.text.graphemes import Borders, graphemes_prefix, last_border, next_border
from conspectus.text.sentences import sentence_end_before

CLUSTERS = st.sampled_from(
    ["a", " ", ".", "e\u0301", "👩\u200d👧", "🇩", "\r", "\n", "क्षि", "\u0600", "\u200d", "ü"]
)
TEXTS = st.lists(CLUSTERS, max_size=30).map("".join)


@given(TEXTS, st.integers(-1, 60))
def test_every_border_is_one_of_the_text_from_its_start(text: str, position: int) -> None:
    borders = sorted({0, len(text), *(cluster.end() for cluster in regex.finditer(r"\X", text))})
    position = min(position, len(text))
    lower = [border for border in borders if border <= max(position, 0)]
    assert graphemes_prefix(text, position) == text[: lower[-1]]
    if position >= 0:
        assert last_border(text, position) == lower[-1]
        assert next_border(text, position) == next(border for border in borders if border >= position)
    text_borders = Borders(text)
    for limit in range(1, len(text) + 1):
        assert text_borders.last(0, limit) == max(border for border in borders if border <= limit)
        assert text_borders.is_border(limit, 0, len(text)) is (limit in borders)


@given(TEXTS, st.integers(-2, 60))
def test_a_cut_is_within_the_limit_and_splits_no_cluster(text: str, limit: int) -> None:
    end = sentence_end_before(text, limit)
    assert 0 <= end <= max(0, min(limit, len(text)))
    assert graphemes_prefix(text, end) == text[:end]
    if limit >= len(text):
        assert end == len(text)
