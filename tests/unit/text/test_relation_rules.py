"""What documents state about others, in fields, metadata and banners; and what is no such statement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.relations import Statement
from conspectus.text.relation_rules import MAX_STATEMENTS, header_names, statements_of


def read(text: str, *, title: str = "", key: str = "new.md") -> list[tuple[str, str, bool]]:
    statements = statements_of(title, key, text, {})
    return [(stated.kind, stated.target, stated.is_inverse) for stated in statements]


@pytest.mark.parametrize(
    "text",
    [
        "Supersedes: Handbook\n\nNew rules.",
        "SUPERSEDES : handbook.md",
        "# New\n\n**Replaces:** [the old one](../handbook.md)\n",
        "| Supersedes | Handbook |",
        ":Obsoletes: Handbook",
        "---\ntitle: New\nsupersedes:\n  - handbook.md\n---\nText",
        "---\ntitle: New\nsupersedes: [handbook.md]\n---\nText",
        "Su\u200bpersedes: Hand\u00adbook",
        "This document replaces the Handbook.",
        "> This page supersedes [[Handbook]].",
        "This policy supersedes \u201cHandbook\u201d, which was written in 2020.",
    ],
)
def test_a_new_document_names_the_old_one(text: str) -> None:
    assert read(text) == [("supersedes", "handbook", False)]


@pytest.mark.parametrize(
    "text",
    [
        "Superseded-By: New Handbook",
        "Status: Superseded by New Handbook",
        "This page is deprecated, see [the new one](docs/new-handbook.md).",
        "!!! warning\n    This document has been superseded by `New Handbook <new-handbook.html>`_.",
        "**Deprecated**: use the new handbook instead.",
        'Obsolete - replaced by "New Handbook".',
        "This guide has moved to https://example.org/a/new-handbook.",
    ],
)
def test_an_old_document_names_the_new_one(text: str) -> None:
    assert ("supersedes", "new handbook", True) in read(text, key="handbook.md")


@pytest.mark.parametrize(
    "text", ["Status: Superseded", "This page is no longer maintained.", "status: deprecated"]
)
def test_an_old_document_may_name_none(text: str) -> None:
    assert read(text) == [("supersedes", "", True)]


def test_numbers_alone_are_those_of_the_own_series() -> None:
    text = "Obsoletes: 2616, 2068                               R. Fielding"
    targets = {target for _, target, _ in read(text, key="rfc7230.txt")}
    assert targets >= {"rfc 2616", "rfc 2068"}
    assert ("supersedes", "pep 245", False) in read("PEP: 3124\nTitle: x\nReplaces: 245, 246\n", key="x")
    assert header_names("PEP: 3124\nTitle: x") == ("pep 3124",)


def test_amendments_and_duplicates_are_relations_of_their_own() -> None:
    assert read("Updates: RFC 7230") == [("amends", "rfc 7230", False)]
    assert read("Amended-By: Annex A") == [("amends", "annex a", True)]
    assert read("Duplicate-Of: notes.md") == [("duplicates", "notes", False)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "This function is deprecated, see other().",
        "The value is replaced by a default.",
        "```\nSupersedes: Handbook\n```\n",
        "It has been superseded by fate.",
        "Cats supersede dogs.",
        f"{'word ' * 2_000}\n\nSupersedes: Handbook",
    ],
)
def test_other_texts_state_nothing(text: str) -> None:
    assert read(text) == []


def test_a_document_states_nothing_about_itself() -> None:
    assert read("Supersedes: new.md") == []


def test_metadata_are_read_like_fields() -> None:
    metadata = {"Superseded_By": ["b.md", 7, None, {"x": 1}], "status": "superseded", "supersedes": True}
    statements = statements_of("", "a.md", "", metadata)
    assert Statement("supersedes", "b", is_inverse=True) in statements
    assert Statement("supersedes", "", is_inverse=True) in statements


@given(st.text(alphabet=st.sampled_from("Supersedes: by\n-[]()`*|>\u200bé7\ud800\x00"), max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert len(statements_of(text[:20], text[:20], text, {text: text})) <= MAX_STATEMENTS


def test_long_lines_take_linear_time() -> None:
    for text in (
        "superseded by " * 5_000,
        "[" * 20_000 + "replaced",
        "this page is deprecated " * 2_000,
        "`" * 9_000,
    ):
        assert len(read(text)) <= MAX_STATEMENTS
