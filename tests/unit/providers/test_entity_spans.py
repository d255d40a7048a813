"""Spans of entities in a text, and pieces of a long text."""

import pytest

from conspectus.providers.entity_spans import Labelled, found_in, pieces
from conspectus.text.name_keys import key_of


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_pieces_are_the_whole_text_in_order(size):
    text = "One two\nthree " + "x" * 50 + " \u2028 end"
    cut = list(pieces(text, size))
    assert "".join(piece for _, piece in cut) == text
    assert all(text[at : at + len(piece)] == piece and 0 < len(piece) <= size for at, piece in cut)
    assert list(pieces("", size)) == []


def test_spans_outside_of_the_text_and_those_inside_longer_ones_are_left_out():
    spans = [Labelled(0, 3, "PER"), Labelled(0, 9, "PERSON"), Labelled(4, 9, "X"), Labelled(-1, 2, "X"),
             Labelled(8, 99, "X"), Labelled(5, 5, "X"), Labelled(9, 14, " ORG ", 7.0),
             Labelled(14, 15, "X")]  # fmt: skip
    names = found_in("Ann Smith Acme!", spans, key_of)
    assert [(name.text, name.type, name.score) for name in names] == [
        ("Ann Smith", "person", 1.0), ("Acme", "organisation", 1.0), ("!", "x", 1.0),
    ]  # fmt: skip
