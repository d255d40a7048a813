"""Hashes of texts and stable ids."""

import regex

from conspectus.text.hashing import content_hash, stable_id


def test_hashes_are_stable_and_total():
    assert content_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert content_hash("\ud800") != content_hash("\ufffd")


def test_ids_depend_on_where_parts_end():
    assert stable_id("a", "bc") == stable_id("a", "bc") != stable_id("ab", "c")
    assert len({stable_id(), stable_id(""), stable_id("", ""), stable_id("\x00")}) == 4
    assert regex.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", stable_id("x")
    )
