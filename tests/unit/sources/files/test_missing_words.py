"""Words that a file shows and that are not in its text."""

import pytest

from conspectus.sources.files.missing_words import ShownText, join_notices, missing_words_notice


@pytest.mark.parametrize(
    ("missing", "notice"),
    [
        (0, None),
        (1, None),
        (2, "2 % of its words are left out: comments"),
        (100, "50 % of its words are left out: comments"),
    ],
)
def test_a_share_of_two_percent_is_said(missing: int, notice: str | None) -> None:
    text = " ".join(["word"] * 100)
    comments = " ".join(["other"] * missing)
    shown_texts = [ShownText("", text[: 5 * (100 - missing)] or text), ShownText("comments", comments)]
    assert missing_words_notice(text, shown_texts) == notice


def test_a_word_of_the_text_stands_for_one_that_is_shown() -> None:
    twice = [ShownText("", "fee"), ShownText("", "fee")]
    assert missing_words_notice("fee", twice) == "50 % of its words are left out: parts of the text"
    assert missing_words_notice("| fee | fee |", twice) is None


def test_the_header_of_several_sections_counts_once() -> None:
    headers = [ShownText("headers", "Harbor handbook")] * 3
    assert missing_words_notice("Harbor handbook", headers) is None


def test_a_file_without_words_has_no_notice() -> None:
    assert missing_words_notice("", []) is None
    assert missing_words_notice("more than is shown", [ShownText("", "…")]) is None


def test_notices_are_joined() -> None:
    assert join_notices(None, "a", None, "b") == "a; b"
    assert join_notices(None) is None
