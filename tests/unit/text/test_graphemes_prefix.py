"""Prefixes of texts end between grapheme clusters."""

import pytest
import regex

from conspectus.text.graphemes import graphemes_prefix


@pytest.mark.parametrize(
    "cluster", ["x", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "\r\n", "한", "क्षि", "\u0600a"]
)
def test_a_prefix_ends_between_clusters(cluster):
    text = cluster * 40
    ends = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    for limit in range(-1, len(text) + 2):
        assert len(graphemes_prefix(text, limit)) == max(end for end in ends if end <= max(limit, 0))
