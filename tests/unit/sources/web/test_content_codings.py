"""Compressed responses are unpacked up to a limit."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import TooLarge
from conspectus.sources.web.content_codings import Unpacker, Unreadable


def pack(data: bytes, coding: str) -> bytes:
    windows = {"gzip": 31, "x-gzip": 31, "deflate": 15, "raw": -15}
    packer = zlib.compressobj(wbits=windows[coding])
    return packer.compress(data) + packer.flush()


def unpack(data: bytes, *codings: str, size: int = 65_536, limit: int = 10_000_000) -> bytes:
    unpacker = Unpacker(codings, limit)
    pieces = [unpacker.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert unpacker.complete
    return b"".join(pieces)


@given(
    st.binary(max_size=2_000),
    st.lists(st.sampled_from(["gzip", "deflate", "x-gzip"]), max_size=3),
    st.integers(1, 99),
)
def test_what_was_packed_comes_out(data: bytes, codings: list[str], size: int) -> None:
    body = data
    for coding in codings:
        body = pack(body, coding)
    assert unpack(body, *codings, size=size) == data
    assert unpack(body, *codings, size=size, limit=max(len(data), 100_000)) == data


def test_the_limit_is_exact() -> None:
    assert len(unpack(pack(bytes(1_000), "gzip"), "gzip", limit=1_000)) == 1_000
    with pytest.raises(TooLarge):
        unpack(pack(bytes(1_001), "gzip"), "gzip", limit=1_000)


def test_a_bomb_in_a_bomb_unpacks_to_one_byte_more_than_the_limit() -> None:
    inner = pack(bytes(50_000_000), "gzip")
    with pytest.raises(TooLarge) as caught:
        unpack(pack(inner * 20, "gzip"), "gzip", "gzip", limit=100_000)
    assert caught.value.size == 100_001


def test_deflate_is_read_with_and_without_its_frame() -> None:
    text = b"a page " * 100
    assert unpack(pack(text, "raw"), "deflate") == text
    assert unpack(pack(text, "deflate") + b"rest", "deflate") == text


def test_members_are_joined_and_what_follows_them_is_dropped() -> None:
    members = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    for size in (1, 2, 7, 1_000):
        assert unpack(members + bytes(100) + b"rest", "gzip", size=size) == b"one two"


def test_very_many_members_are_refused() -> None:
    with pytest.raises(Unreadable, match="too many parts"):
        unpack(gzip.compress(b"") * 10_001, "gzip")


@pytest.mark.parametrize("codings", [["br"], ["gzip", "zstd"], ["gzip"] * 4, ["gzip\0"]])
def test_other_codings_are_refused(codings: list[str]) -> None:
    with pytest.raises(Unreadable):
        Unpacker(codings, 1_000)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_damage_is_an_error(coding: str) -> None:
    with pytest.raises(Unreadable):
        unpack(b"<html>this was never packed</html>", coding)
    body = pack(bytes(range(256)) * 100, coding)
    with pytest.raises(Unreadable):
        unpack(body[:200] + b"\xff\xff\xff\xff" + body[204:], coding, size=50)


def test_an_end_too_early_is_noticed() -> None:
    body = pack(bytes(range(256)) * 100, "gzip")
    unpacker = Unpacker(["gzip"], 100_000)
    unpacker.feed(body[:-1])
    assert not unpacker.complete
    assert Unpacker(["gzip"], 100).complete


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_unpacked_or_refused(data: bytes, coding: str) -> None:
    try:
        assert len(Unpacker([coding], 1_000).feed(data)) <= 1_000
    except (Unreadable, TooLarge):
        return
