"""The texts of a chunk: what is embedded, and what keyword search reads beside it."""

import pytest
from tests.support.journal import make_chunk

from conspectus.model.index import analyzed_text


@pytest.mark.parametrize(
    ("path", "key", "title", "expected"),
    [
        ("menu.md", "menu.md", "Abstract", "menu.md"),
        ("ops/menu.md", "ops/menu.md", "Abstract", "ops menu.md"),
        ("ops/menu.md", "ops/menu.md", "menu.md", "ops"),
        ("menu.md", "menu.md", "menu.md", ""),
        ("post.zip/2024/menu.md", "k", "Abstract", "post.zip 2024 menu.md"),
        ("faq.json", "faq.json#17", "Abstract", "faq.json"),
        ("/a/b/c/d/e/f.md", "f.md", "", "c d e f.md"),
        ("", "", "Abstract", ""),
        (None, "ops/menu.md", "Abstract", ""),
        (["menu.md"], "menu.md", "Abstract", ""),
    ],
)
def test_the_place_of_a_file_is_searched_and_not_embedded(
    path: object, key: str, title: str, expected: str
) -> None:
    chunk = make_chunk(1, "Soup.", title=title, key=key, metadata={} if path is None else {"path": path})
    assert analyzed_text(chunk.document, "Soup.") == (f"{expected}\n" if expected else "") + chunk.passage
    assert chunk.passage == (f"{title}\nSoup." if title else "Soup.")


def test_captions_have_no_place() -> None:
    chunk = make_chunk(1, "Soup.", title="talk", metadata={"path": "talk.srt"}, kind="caption")
    assert chunk.analyzed_text == chunk.passage


def test_a_chunk_that_cannot_be_analyzed_has_no_terms() -> None:
    chunk = make_chunk(1, "Soup.", metadata={"path": "menu.md"})
    assert chunk.term_text == chunk.analyzed_text == "menu.md\nSoup."
