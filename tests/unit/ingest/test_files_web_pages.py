"""Responses of web servers: which are accepted, and the names of their files."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import FetchFailed, UnsupportedContent
from conspectus.ingest.files import file_name, page_key, require_text_answer, source_name, title_of
from conspectus.ports.web import Fetched
from conspectus.sources.files.local_files import LocalFiles

PAGE = Fetched("https://example.org/docs/page?key=secret", 200, "text/html", "utf-8", b"<h1>Hello</h1>")
TAKEN = """
text/plain text/html text/markdown text/css text/csv text/x-whatever text/calendar application/json
application/ld+json application/geo+json application/problem+json application/x-ndjson application/xml
application/atom+xml application/rss+xml application/xhtml+xml application/yaml application/x-yaml
application/openapi+yaml application/toml application/javascript application/x-javascript
application/ecmascript application/x-sh application/graphql application/sql application/x-ipynb+json
"""
DOCUMENTS = """
application/pdf application/epub+zip message/rfc822 application/gzip application/x-tar
application/vnd.openxmlformats-officedocument.wordprocessingml.document
application/vnd.openxmlformats-officedocument.presentationml.presentation
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
"""
REFUSED = """
image/png image/svg+xml audio/mpeg video/mp4 font/woff2 application/octet-stream application/x-7z-compressed
application/wasm application/msword application/x-msdownload
multipart/form-data application/x-www-form-urlencoded foo/bar
"""
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\x06\0\0\0" + bytes(range(256)) * 20


@pytest.mark.parametrize("status", [200, 201, 203, 204, 206, 299])
def test_good_answers_are_taken(status: int) -> None:
    answer = replace(PAGE, status=status)
    assert require_text_answer(answer) == answer


@pytest.mark.parametrize("status", [304, 302, 400, 401, 403, 404, 410, 418, 451, 499, 100])
def test_refusals_are_final(status: int) -> None:
    with pytest.raises(FetchFailed, match=str(status)) as caught:
        require_text_answer(replace(PAGE, status=status, content_type="image/png"))
    assert (caught.value.status, caught.value.passing) == (status, False)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_trouble_may_pass(status: int) -> None:
    with pytest.raises(FetchFailed) as caught:
        require_text_answer(replace(PAGE, status=status))
    assert (caught.value.status, caught.value.passing) == (status, True)


@pytest.mark.parametrize("kind", [*TAKEN.split(), *DOCUMENTS.split()])
def test_kinds_that_hold_text_are_taken(kind: str) -> None:
    assert require_text_answer(replace(PAGE, content_type=kind)).content_type == kind


@pytest.mark.parametrize("kind", REFUSED.split())
def test_other_kinds_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedContent) as caught:
        require_text_answer(replace(PAGE, content_type=kind))
    assert kind in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["", "html", "*"])
def test_no_kind_is_plain_text(kind: str) -> None:
    assert require_text_answer(replace(PAGE, content_type=kind)).content_type == "text/plain"


@pytest.mark.parametrize("body", [PNG, bytes(1_000), b"text\0\1\2\3", b"\x7fELF\2\1\1" + bytes(57)])
@pytest.mark.parametrize("kind", ["", "text/html", "application/json"])
def test_binary_data_are_refused_whatever_they_say(kind: str, body: bytes) -> None:
    with pytest.raises(UnsupportedContent):
        require_text_answer(replace(PAGE, content_type=kind, body=body))


@pytest.mark.parametrize(
    "body",
    [
        *[b"", b"x", "größe".encode("latin-1"), "日本語".encode("shift_jis"), b"\x1b[31mred\x1b[0m\r\n"],
        *["日本語".encode("iso2022_jp"), "a wide text".encode("utf-16"), "a wide text".encode("utf-16-le")],
        *["a wide text".encode("utf-32"), "日本語".encode("utf-16"), b"a page\x0c" * 9],
        b"one zero \0 in a long line",
    ],
)  # fmt: skip
def test_text_in_any_encoding_is_taken(body: bytes) -> None:
    assert require_text_answer(replace(PAGE, body=body)).body == body


def test_a_wide_encoding_may_be_named_only() -> None:
    body = "日本語\0\1\2".encode("utf-16-be") * 9
    assert require_text_answer(replace(PAGE, body=body, charset="utf-16be")).body == body
    assert require_text_answer(replace(PAGE, body=PNG, content_type="application/pdf")).body == PNG


@pytest.mark.parametrize(
    ("url", "kind", "name"),
    [
        ("https://example.org/", "text/html", "example.org.html"),
        ("https://commonmark.md/", "text/plain", "commonmark.md.txt"),
        ("https://example.org/a/b.php?x=1", "text/html", "b.php.html"),
        ("https://example.org/a/page.HTM", "text/html", "page.HTM"),
        ("https://example.org/README.md", "text/plain", "README.md"),
        ("https://example.org/main.rs", "text/plain", "main.rs"),
        ("https://example.org/about", "text/plain", "about.txt"),
        ("https://example.org/about/", "text/markdown", "about.md"),
        ("https://example.org/paper.pdf", "text/html", "paper.pdf.html"),
        ("https://example.org/paper.pdf", "text/plain", "paper.pdf.txt"),
        ("https://example.org/paper", "application/pdf", "paper.pdf"),
        ("https://example.org/gr%C3%B6%C3%9Fe", "text/csv", "größe.csv"),
        ("https://example.org/api/v1.2", "application/vnd.api+json", "v1.2.json"),
        ("https://example.org/feed", "application/rss+xml", "feed.xml"),
        ("https://example.org/notebook", "application/x-ipynb+json", "notebook.ipynb"),
        ("https://example.org/a%2Fb%5Cc%00.html", "text/html", "c.html"),
        ("https://example.org/%2e%2e%2f..", "text/html", "example.org.html"),
    ],
)
def test_names_say_what_the_content_is(url: str, kind: str, name: str) -> None:
    assert file_name(replace(PAGE, url=url, content_type=kind)) == name


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("attachment; filename=report.pdf", "report.pdf"),
        ('inline; filename="the report 1.pdf"', "the report 1.pdf"),
        ("attachment; filename*=UTF-8''%e2%82%ac%20rates.pdf", "€ rates.pdf"),
        ('attachment; filename="../../etc/passwd"', "passwd.pdf"),
        ('attachment; filename="C:\\\\dir\\\\x.pdf"', "x.pdf"),
        ("attachment", "page.pdf"),
        ("attachment; filename=", "page.pdf"),
        ("attachment; filename=..", "page.pdf"),
        ("attachment; filename*=none'such'%ff.pdf", "ÿ.pdf"),
        (";;;\r\n=;filename", "page.pdf"),
    ],
)
def test_the_server_may_name_the_content(header: str, name: str) -> None:
    headers = {"content-disposition": header}
    assert file_name(replace(PAGE, content_type="application/pdf", headers=headers)) == name


def test_long_names_are_cut_before_their_end() -> None:
    name = file_name(replace(PAGE, url=f"https://example.org/{'a' * 1_000}.html"))
    assert len(name) == 150 and name.endswith("aaaaa.html")


@given(st.text(), st.text(), st.sampled_from(["text/html", "text/plain", "application/pdf", "a/x+json", ""]))
def test_any_name_is_one_safe_file_name(header: str, path: str, kind: str) -> None:
    path = path.encode("utf-8", "ignore").hex("%") or "00"
    answer = replace(
        PAGE, url=f"https://a.org/%{path}", content_type=kind, headers={"content-disposition": header}
    )
    name = file_name(answer)
    assert 0 < len(name) <= 160 and not set(name) & set("/\\\0\r\n") and name.strip(" .") == name
    assert kind != "text/html" or name.lower().endswith((".html", ".htm", ".xhtml"))
    assert title_of(answer.url).strip()


def test_names_lead_to_the_right_parser() -> None:
    files = LocalFiles()
    for kind, body in (
        ("text/html", b"<title>T</title><p>Some text here.</p>"),
        ("text/markdown", b"# T\n\ntext"),
    ):
        parsed = files.parse_bytes(body, file_name(replace(PAGE, content_type=kind)))
        assert parsed.documents[0].title == "T"
        assert parsed.documents[0].syntax == "markdown"


def test_a_domain_is_one_source() -> None:
    assert source_name("HTTPS://me:secret@Www.Example.org:443/a") == "www.example.org"
    assert source_name("http://example.org:8080/a") == "example.org:8080"
    assert source_name("https://MÜNCHEN.de") == "xn--mnchen-3ya.de"
    assert source_name("http://[2001:DB8::1]/") == "[2001:db8::1]"


def test_one_page_has_one_key() -> None:
    spellings = [
        "https://example.org",
        "HTTPS://EXAMPLE.org:443/#top",
        "https://me:secret@example.org/?",
        "https://example.org./",
    ]
    assert {page_key(spelling) for spelling in spellings} == {"https://example.org/"}
    assert page_key("http://a/x?b=2&a=1#c") == "http://a/x?b=2&a=1"
    assert page_key("http://a/x") != page_key("https://a/x")


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://example.org/docs/getting-started.html?x=1", "getting started"),
        ("https://example.org/wiki/K%C3%B6ln_am_Rhein/", "Köln am Rhein"),
        ("https://example.org/node.js", "node.js"),
        ("https://example.org/v1.2", "v1.2"),
        ("https://example.org/", "example.org"),
        ("https://example.org/---/", "example.org"),
        ("https://example.org/%00", "example.org"),
    ],
)
def test_titles_come_from_the_path(url: str, title: str) -> None:
    assert title_of(url) == title
