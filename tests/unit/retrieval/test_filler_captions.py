"""Captions of one filler word."""

import pytest

from conspectus.retrieval.filler_captions import is_filler_caption


@pytest.mark.parametrize("text", ["Okay.", "Um,", "- Sí.", "Ähm", ">>", "", "  Right!  "])
def test_one_filler_word_says_nothing(text: str) -> None:
    assert is_filler_caption(text)


@pytest.mark.parametrize("text", ["Okay, go.", "Package.", "Einstein.", "7", "So what?", "わかった。"])
def test_content_is_no_filler(text: str) -> None:
    assert not is_filler_caption(text)
