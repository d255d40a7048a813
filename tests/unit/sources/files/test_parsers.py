"""Parsers of files: their documents, titles, keys and metadata."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import UnreadableFile
from conspectus.model.records import NewDocument
from conspectus.sources.files.html import markdown_title, read_html, rst_title
from conspectus.sources.files.parsers import Parsed, media_type, parse_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def parse(text: str, name: str) -> Parsed:
    return parse_text(text, name=name, path=f"/data/{name}")


def parse_one(text: str, name: str) -> NewDocument:
    documents, _ = parse(text, name)
    assert len(documents) == 1
    return documents[0]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# First\n\n# Second", "First"),
        ("intro\n\n## Deep ##\n", "Deep"),
        ("Under\n=====\n", "Under"),
        ("---\ntitle: 'Front: matter'\ntags: [a]\n---\n# Heading", "Front: matter"),
        ('+++\ntitle = "Toml"\n+++\n# Heading', "Toml"),
        ("---\ntags: a\n---\n# Heading", "Heading"),
        ("```sh\n# comment\n```\n# Real", "Real"),
        ("~~~~\n```\n# no\n~~~~\n\n# Yes", "Yes"),
        ("#hashtag\ntext", ""),
        ("- item\n\n---\n", ""),
        ("\n---\n", ""),
    ],
)
def test_markdown_title(text: str, title: str) -> None:
    assert markdown_title(text) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("PEP: 8\n\nIntroduction\n============\n\ntext", "Introduction"),
        ("=====\nOver\n=====\n", "Over"),
        ("too long for it\n---\n\nGood\n----", "Good"),
        ("-----\n-----\n", ""),
        ("only text", ""),
    ],
)
def test_restructured_title(text: str, title: str) -> None:
    assert rst_title(text) == title


def test_a_page_is_titled_and_knows_where_it_is_from() -> None:
    page = parse_one("# Guide\n\nText", "docs/guide.md")
    assert (page.title, page.key, page.kind, page.syntax) == ("Guide", "docs/guide.md", "page", "markdown")
    assert page.metadata == {"path": "/data/docs/guide.md", "media_type": "text/markdown"}
    code = parse_one("x = 1\n", "src/a.PY")
    assert (code.title, code.syntax, code.metadata["media_type"]) == ("a.PY", "code", "text/x-py")
    plain = parse_one("words", "LICENSE")
    assert (plain.title, plain.syntax, plain.metadata["media_type"]) == ("LICENSE", "plain", "text/plain")


@pytest.mark.parametrize(
    "name", ["a.md", "a.rst", "a.html", "a.json", "a.jsonl", "a.srt", "a.vtt", "a.py", "a"]
)
@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_file_is_no_document_and_no_error(name: str, text: str) -> None:
    assert parse(text, name) == ((), "the file is empty")


def test_html_keeps_the_main_text_and_leaves_scripts_out() -> None:
    paragraph = "The quick brown fox jumps over the lazy dog near the river bank. " * 5
    page = parse_one(
        f"<title> My\n page </title><script>var hidden = 1</script><style>p {{}}</style>"
        f"<main><h1>Fox</h1><p>{paragraph}</p><table><tr><td>cell one</td></tr></table></main>",
        "index.html",
    )
    assert page.title == "My page"
    assert page.text.count("quick brown fox") == 5
    assert "cell one" in page.text
    assert "hidden" not in page.text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("just text", "just text"),
        ("<td>cell", "cell"),
        ("<textarea>typed</textarea>", "typed"),
        ("<noscript>turn it on</noscript>", "turn it on"),
        ("<p>a&amp;b &#8212; c", "a&b \u2014 c"),
        ("<title>Only a title</title>", "Only a title"),
        ("<nav><a href='/'>Home</a></nav>", "Home"),
        ("<h2>Head</h2>", "Head"),
        ("a<script>if (a < b) {}</script>c", "ac"),
    ],
)
def test_a_page_with_text_never_comes_out_empty(markup: str, text: str) -> None:
    assert text in read_html(markup).text


def test_html_without_text_is_no_document() -> None:
    assert parse("<html><body><img src=x><script>1</script></body></html>", "a.html")[0] == ()


def test_json_array_objects_become_documents_with_metadata() -> None:
    rows = [
        {"id": 7, "text": "seven", "title": "Seven", "tags": ["a"], "path": "own"},
        {"_id": "eight", "content": "  eight ", "text": " ", "title": 8},
        {"body": "nine", "id": True},
        "a plain string",
    ]
    documents, notice = parse(json.dumps(rows), "rows.json")
    assert [document.key for document in documents] == [
        f"rows.json#{key}" for key in ("7", "eight", "3", "4")
    ]
    assert [document.text for document in documents] == ["seven", "  eight ", "nine", "a plain string"]
    assert [document.title for document in documents] == ["Seven", "", "", ""]
    assert documents[0].metadata == {
        "id": 7, "tags": ["a"], "record_path": "own", "path": "/data/rows.json",
        "media_type": "application/json",
    }  # fmt: skip
    assert documents[1].metadata["title"] == 8
    assert notice is None


def test_equal_ids_in_one_file_lose_nothing() -> None:
    text = "\n".join(
        json.dumps({"id": name, "text": f"row {n}"}) for n, name in enumerate(["a", "a", "a", "2", 2])
    )
    documents, _ = parse(text, "x.jsonl")
    assert [document.text for document in documents] == [f"row {n}" for n in range(5)]
    assert len({document.key for document in documents}) == 5


def test_json_without_a_text_field_is_taken_as_a_whole() -> None:
    text = '{"dependencies": {"left-pad": "1.0"}}'
    documents, notice = parse(text, "package.json")
    assert [(document.text, document.key, document.syntax) for document in documents] == [
        (text, "package.json", "code")
    ]
    assert notice is not None and "the file is one document" in notice


@pytest.mark.parametrize(
    "text",
    [
        '{"text": ',
        '["a"',
        "[1e999]",
        "[NaN]",
        "[" * 200_000,
        '{"a":' * 200_000,
        "[" + "9" * 5000 + "]",
        "hello",
    ],
    ids=["cut", "open", "infinity", "nan", "deep", "deep-object", "long-number", "words"],
)
def test_json_that_cannot_be_read_is_a_clear_error(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"a\.json: not valid application/json"):
        parse(text, "a.json")


def test_json_lines_end_at_newlines_only_and_bad_lines_are_named() -> None:
    inside = "one\u2028two\x85three\x0cfour"
    lines = [
        json.dumps({"text": inside}, ensure_ascii=False).replace("\\f", "\\u000c"),
        "",
        "{bad",
        '{"n": 1}',
        "[]",
    ]
    documents, notice = parse("\n".join(lines), "log.jsonl")
    assert [(document.text, document.key) for document in documents] == [(inside, "log.jsonl#1")]
    assert notice is not None
    assert "line 3 is not JSON" in notice
    assert "line 4 has no text; line 5 has no text" in notice


def test_a_file_of_many_bad_lines_names_a_few_and_counts_the_rest() -> None:
    _, notice = parse("\n".join(["nope"] * 100 + ['{"text": "x"}']), "a.ndjson")
    assert notice is not None and notice.endswith("and 95 more") and len(notice) < 500


def test_json_lines_without_any_usable_line_is_an_error() -> None:
    with pytest.raises(UnreadableFile, match="no valid line: line 1"):
        parse('{"n": 1}\nnope\n', "a.jsonl")


def test_what_no_store_can_hold_is_replaced() -> None:
    document = parse_one('{"text": "a\\u0000b\\ud800c", "k\\udc00": "\\ud83d\\ude00"}', "a.json")
    assert document.text == "a\ufffdb\ufffdc"
    assert document.metadata["k\ufffd"] == "\U0001f600"


@given(
    st.lists(st.dictionaries(st.sampled_from(["text", "id", "title", "other", "path"]), VALUES), max_size=5)
)
def test_every_text_of_any_json_lines_arrives_once(rows: list[dict[str, object]]) -> None:
    texts = [row["text"] for row in rows if isinstance(row.get("text"), str) and str(row["text"]).strip()]
    text = "\n".join(map(json.dumps, rows))
    if not texts:
        return
    documents, _ = parse(text, "a.jsonl")
    assert [document.text for document in documents] == [
        str(value).replace("\0", "\ufffd") for value in texts
    ]
    assert len({document.key for document in documents}) == len(documents)


@given(st.text(alphabet="<>/!-[]&;=\"' abtd\n"))
def test_any_markup_is_read_or_refused(text: str) -> None:
    try:
        documents, _ = parse(text, "a.html")
    except UnreadableFile:
        return
    assert all(document.text.strip() for document in documents)


def test_names_say_the_media_type() -> None:
    assert [media_type(name) for name in ("a.md", "B.HTML", "d.csv")] == [
        "text/markdown",
        "text/html",
        "text/csv",
    ]
    assert {media_type(name) for name in ("c.unknown", "noext", "e.txt")} == {"text/plain"}
    assert {media_type(name) for name in ("Dockerfile", "x/Makefile")} == {"text/x-source"}
