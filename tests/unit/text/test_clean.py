import pytest
import regex

from conspectus.text.clean import clean
from conspectus.text.graphemes import graphemes_prefix
from conspectus.text.hashing import content_hash, stable_id
from conspectus.text.sentences import sentence_end_before


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        (" as it\r\nis \u0301\ufeff", " as it\r\nis \u0301\ufeff"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b\udc00", "a\ufffdb\ufffd"),
        ("\ud83c\udf89", "🎉"),
        ("\udf89\ud83c", "\ufffd\ufffd"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(text, cleaned):
    assert clean(text) == cleaned
    assert clean(cleaned).encode() == cleaned.encode()


@pytest.mark.parametrize(
    "cluster", ["x", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "\r\n", "한", "क्षि", "\u0600a"]
)
def test_a_prefix_ends_between_clusters(cluster):
    text = cluster * 40
    ends = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    for limit in range(-1, len(text) + 2):
        assert len(graphemes_prefix(text, limit)) == max(end for end in ends if end <= max(limit, 0))


def test_a_text_is_cut_at_its_last_sentence():
    text = "First sentence. Second one! Third goes on and on"
    assert text[: sentence_end_before(text, 30)] == "First sentence. Second one!"
    assert text[: sentence_end_before(text, 40)] == "First sentence. Second one!"


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("all of it", 9, "all of it"),
        ("all of it", 100, "all of it"),
        ("anything", 0, ""),
        ("anything", -5, ""),
        ("", 3, ""),
        ("one two three", 9, "one two"),
        ("version 1.25 is out now", 11, "version"),
        ("A. word after word after word", 20, "A. word after word"),
        ("一つ目の文。二つ目の文", 8, "一つ目の文。"),
        ("unbroken", 4, "unbr"),
        ("line one\nline two goes on", 14, "line one"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301"),
    ],
)
def test_where_a_text_is_cut(text, limit, kept):
    assert text[: sentence_end_before(text, limit)] == kept


@pytest.mark.parametrize("piece", ["x", "e\u0301", "\u0301", ". ", "\n", " \u0301", "🇩🇪"])
def test_huge_texts_are_cut_within_the_limit(piece):
    text = piece * 1_000_000
    assert 900_000 - 2_100 <= sentence_end_before(text, 900_000) <= 900_000


def test_hashes_are_stable_and_total():
    assert content_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert content_hash("\ud800") != content_hash("\ufffd")


def test_ids_depend_on_where_parts_end():
    assert stable_id("a", "bc") == stable_id("a", "bc") != stable_id("ab", "c")
    assert len({stable_id(), stable_id(""), stable_id("", ""), stable_id("\x00")}) == 4
    assert regex.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", stable_id("x")
    )
