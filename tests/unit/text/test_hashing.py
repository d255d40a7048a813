"""Hashes of texts and stable ids."""

import uuid

import pytest
import regex

from conspectus.errors import InvalidInput
from conspectus.text.hashing import (
    KEY_BYTES,
    NAME_BYTES,
    content_hash,
    edge_id,
    fits,
    require_fitting,
    stable_id,
)
from conspectus.text.times import EPOCH


def test_hashes_are_stable_and_total():
    assert content_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert content_hash("\ud800") != content_hash("\ufffd")


def test_ids_depend_on_where_parts_end():
    assert stable_id("a", "bc") == stable_id("a", "bc") != stable_id("ab", "c")
    assert len({stable_id(), stable_id(""), stable_id("", ""), stable_id("\x00")}) == 4
    assert regex.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", stable_id("x")
    )


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("ü", 2), ("€", 3), ("🎉", 4), ("\ud800", 3), ("\0", 1)]
)
def test_a_text_fits_by_its_bytes(text: str, length: int) -> None:
    assert fits(text, length)
    assert not fits(text, length - 1)
    assert require_fitting("key", text, length) == text
    with pytest.raises(InvalidInput, match=f"more than {length - 1} bytes") as refused:
        require_fitting("key", text, length - 1)
    assert refused.value.field == "key"


def test_ids_stay_what_stores_have() -> None:
    """An id that changed would make a second document, edge or feedback of each stored one."""
    assert stable_id() == "d7ac5fc8-41a2-5335-8424-6945bee28173"
    assert stable_id("a", "bc") == "5b4aeb54-f100-54ec-b2ac-b7656dbda46e"
    assert edge_id("g", "a", "b", "knows", None) == stable_id("edge", "g", "a", "b", "knows", "")
    begun = edge_id("g", "a", "b", "knows", EPOCH)
    assert begun == stable_id("edge", "g", "a", "b", "knows", "1970-01-01T00:00:00.000000Z")
    assert uuid.UUID(begun).version == 5
    assert (NAME_BYTES, KEY_BYTES) == (1_000, 2_048)
