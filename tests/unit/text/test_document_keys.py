"""Keys of documents' names: spellings of a name share one, and other names do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.text.document_keys import (
    MAX_NAME_BYTES,
    document_key,
    names_of,
    path_key,
    version_of,
)


@pytest.mark.parametrize(
    "spelling", ["PEP 420", "pep-0420", "PEP420", "  Pep_420. ", "pep\u200b 420", "\uff30\uff25\uff30 420"]
)
def test_spellings_of_a_number_share_a_key(spelling: str) -> None:
    assert document_key(spelling) == "pep 420"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("docs/old-guide.md", "old guide"),
        ("../a/b/New_Page.html#part?x=1", "new page"),
        ("https://example.org/handbook/", "handbook"),
        ("guide/index.md", "guide index"),
        ("index.md", "index"),
        ("", ""),
        ("///", ""),
        ("C:\\texts\\Rules.docx", "rules"),
    ],
)
def test_a_path_is_named_by_its_last_part(path: str, key: str) -> None:
    assert path_key(path) == key


def test_a_document_is_named_by_file_path_title_and_number() -> None:
    names = names_of("PEP 420 \u2013 Implicit Namespace Packages", "peps/pep-0420.rst")
    assert names == ("pep 420", "peps pep 420", "pep 420 implicit namespace packages")
    assert names_of("", "6f1c0b0e-5a3d-4f1e-8c2b-7a9d0e4f6a1b") == ()


@pytest.mark.parametrize(
    ("title", "key", "version"),
    [
        ("", "api_docs_v0.2.1_draft.md", ("versions of api docs", (0, 2, 1))),
        ("Handbook (version 3)", "x", ("versions of handbook", (3,))),
        ("Handbook v2", "", ("versions of handbook", (2,))),
        ("Chapter 2", "chapter-2.md", None),
        ("migrate from pydantic v1 to v2 today", "", None),
        ("v2", "v2", None),
    ],
)
def test_a_version_ends_a_name(title: str, key: str, version: tuple[str, tuple[int, ...]] | None) -> None:
    assert version_of(title, key) == version


@given(st.text(), st.text())
def test_names_of_any_document_can_be_stored(title: str, key: str) -> None:
    for name in names_of(title, key):
        assert name
        assert len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES + len("versions of ")
