"""Parsing of web addresses as browsers do, or a refusal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.text.urls import DEFAULT_PORTS, parse_url


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a?b=1&a=2#part", "https://example.org/a?b=1&a=2"),
        ("http://example.org:8080", "http://example.org:8080/"),
        ("http://example.org:/", "http://example.org/"),
        ("http://example.org./", "http://example.org/"),
        ("http://example.org/?", "http://example.org/"),
        ("http://user:secret@example.org/x", "http://example.org/x"),
        ("http://a/b/../../../c/./d/%2e%2e/e", "http://a/c/e"),
        ("http://example.org/größe und mehr?q=größe", "http://example.org/gr%C3%B6%C3%9Fe%20und%20mehr?q=gr%C3%B6%C3%9Fe"),
        ("http://example.org/%C3%B6%2Fa", "http://example.org/%C3%B6%2Fa"),
        ("https://MÜNCHEN.de/", "https://xn--mnchen-3ya.de/"),
        ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("  http://example.org/\n", "http://example.org/"),
        ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"),
    ],
)  # fmt: skip
def test_addresses_have_one_normal_form(text: str, normal: str) -> None:
    assert str(parse_url(text)) == normal
    assert str(parse_url(normal)) == normal


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *[(spelling, "127.0.0.1") for spelling in ("127.1", "127.0.1", "2130706433", "017700000001")],
        *[(spelling, "127.0.0.1") for spelling in ("0x7f000001", "0X7F.1", "0177.0.0.0x1", "127.0.0.1.")],
        *[(spelling, "127.0.0.1") for spelling in ("%31%32%37.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1")],
        ("0", "0.0.0.0"),
        ("1.2.0x", "1.2.0.0"),
        ("ⓛocalhost", "localhost"),
        ("local\u00adhost", "localhost"),
        ("LOCALHOST%2E", "localhost"),
    ],
)
def test_hosts_are_read_in_every_spelling(host: str, address: str) -> None:
    assert parse_url(f"http://{host}/").host == address


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "example.org",
            "//example.org/",
            "ftp://a/",
            "file:///etc/passwd",
            "http:/a",
            "http:a",
            "http://",
        ],
        *["http://a b/", "http://a:0/", "http://a:65536/", "http://a:x/", "http://a:99999999999/"],
        *["http://a:80:80/", "http://[::1", "http://::1/", "http://[::1%25eth0]/", "http://[::1]x/"],
        *["http://[1.2.3.4]/", "http://[①::]/", "http://a..b/", "http://.a/", "http://-.{}/", "http://a!/"],
        *["http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.2.3.09/", "http://4294967296/", "http://a.0x/"],
        *["http://0o177.0.0.1/", "http://1e3/a\tb", "http://a/\r\nX: y", "http://a/\0", "http://a%00b/"],
        *["http://a\\@b/", "http://b\\.a/", "http://a%2Fb/", "http://a%40b/", "http://℀.org/", "http://%ff/"],
        *["http://a/\ud800", "http://\ud800/", f"http://{'a' * 64}/", f"http://{'a.' * 127}a/"],
        "http://" + "ü" * 100_000,
    ],
)
def test_doubtful_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_url(text)


def test_messages_repeat_nothing() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_url("http://user:secret@ho st/?key=secret")
    assert "secret" not in str(caught.value)
    assert parse_url("http://user:secret@a/b?key=secret").redacted == "http://a/b"
    assert "secret" not in repr(parse_url("http://user:secret@a/b"))


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ("/c", "http://a:8/c"),
        ("c", "http://a:8/b/c"),
        ("../../c", "http://a:8/c"),
        ("?q", "http://a:8/b/?q"),
        ("//other/x", "http://other/x"),
        ("https://other", "https://other/"),
        ("", "http://a:8/b/"),
        ("/größe", "http://a:8/gr%C3%B6%C3%9Fe"),
    ],
)
def test_references_are_followed(reference: str, address: str) -> None:
    assert str(parse_url("http://a:8/b/").resolve(reference)) == address


@pytest.mark.parametrize("reference", ["ftp://x/", "javascript:alert(1)", "http://[", "//a b/", "data:,x"])
def test_references_elsewhere_are_refused(reference: str) -> None:
    with pytest.raises(InvalidInput):
        parse_url("http://a/b").resolve(reference)


@given(st.one_of(st.text(), st.text().map("http://{}".format), st.text().map("http://a/{}".format)))
def test_any_text_is_read_to_a_fixed_point_or_refused(text: str) -> None:
    try:
        url = parse_url(text)
    except InvalidInput:
        return
    assert str(url).isascii() and str(url).isprintable() and " " not in str(url)
    assert str(parse_url(str(url))) == str(url)


@pytest.mark.data
def test_no_reading_differs_from_the_browsers(evaluation: Callable[[str], Path]) -> None:
    cases = json.loads((evaluation("ssrf_urls") / "whatwg" / "whatwg.json").read_text(encoding="utf-8"))
    read = 0
    for case in (case for case in cases if isinstance(case, dict) and "xn--" not in case["input"].lower()):
        try:
            url = parse_url(case["input"])
        except InvalidInput:
            continue
        read += 1
        port = "" if url.port == DEFAULT_PORTS[url.scheme] else str(url.port)
        assert not case.get("failure"), case
        assert (url.host, port) == (case["hostname"].strip("[]"), case["port"]), case
    assert read > 100
