"""Preparation of documents: what is stored, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from conspectus.errors import InvalidInput, TooLarge
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, prepare
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import NewDocument, Period, PreparedDocument, Source
from conspectus.settings import Settings
from conspectus.text.tokens import ESTIMATORS

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
BY = Preparation(
    source=Source(SourceId("s"), CollectionId("c"), "notes"),
    settings=Settings(
        max_document_characters=10_000,
        max_metadata_bytes=200,
        max_metadata_depth=3,
        chunk_size=100,
        chunk_overlap=10,
    ),
    count=ESTIMATORS["chars4_min1"],
    now=NOW,
)


def prepare_document(**fields: object) -> PreparedDocument:
    new = NewDocument(**{"text": "some text", "key": "k", **fields})
    return prepare(new, describe(new, BY)[0], BY)


def test_the_same_key_in_the_same_source_is_the_same_document() -> None:
    assert prepare_document(text="one").document.id == prepare_document(text="two").document.id
    assert prepare_document().document.id != prepare_document(key="other").document.id


def test_without_a_key_every_document_is_new() -> None:
    assert prepare_document(key=None).document.id != prepare_document(key=None).document.id


@pytest.mark.parametrize(
    "change",
    [
        {"text": "x"},
        {"title": "x"},
        {"metadata": {"a": 1}},
        {"author": "x"},
        {"sequence": 1},
        {"thread": "x"},
    ],
)
def test_the_fingerprint_changes_with_every_field(change: dict[str, object]) -> None:
    assert prepare_document(**change).document.fingerprint != prepare_document().document.fingerprint
    assert prepare_document().document.fingerprint == prepare_document().document.fingerprint


def test_text_without_a_visible_character_has_no_chunks() -> None:
    assert prepare_document(text=" \n\t ").chunks == ()
    assert prepare_document(text="").chunks == ()


@pytest.mark.parametrize("blank", ["\n", " ", "\t", "\u00a0", "\r\n"])
def test_no_chunk_is_white_space_alone(blank: str) -> None:
    text = f"walrus{blank * 900}tide{blank * 900}"
    chunks = prepare_document(text=text).chunks
    assert all(chunk.text.strip() for chunk in chunks)
    assert (chunks[0].start, chunks[-1].end) == (0, len(text))


def test_what_cannot_be_encoded_is_replaced_not_refused() -> None:
    document = prepare_document(text="a\ud800b\x00c", title="\udfff", metadata={"k\ud800": "\x00"})
    assert document.chunks[0].text == "a\ufffdb\ufffdc"
    assert document.document.title == "\ufffd"
    assert document.document.metadata == {"k\ufffd": "\ufffd"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": float("nan")},
        {"a": object()},
        {1: "a"},
        {"a": {"b": {"c": {"d": 1}}}},
        {"a": datetime(2026, 1, 1)},
    ],
)
def test_metadata_that_is_not_plain_json_is_refused(metadata: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        prepare_document(metadata=metadata)
    assert refusal.value.field == "metadata"


def test_instants_in_metadata_are_kept_in_universal_time() -> None:
    at = datetime(2026, 1, 5, 14, tzinfo=timezone(timedelta(hours=2)))
    assert prepare_document(metadata={"at": at}).document.metadata == {"at": "2026-01-05T12:00:00.000000Z"}


def test_sizes_over_a_limit_are_refused_with_both_numbers() -> None:
    with pytest.raises(TooLarge) as text:
        prepare_document(text="x" * 10_001)
    assert (text.value.size, text.value.limit) == (10_001, 10_000)
    with pytest.raises(TooLarge):
        prepare_document(metadata={"a": "x" * 200})


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ends before"):
        prepare_document(occurred=Period(NOW, NOW - timedelta(seconds=1)))


def test_event_times_may_come_as_text_number_or_instant() -> None:
    instant = Period(NOW, NOW)
    for value in ("2026-01-05T12:00:00Z", NOW.timestamp(), NOW, instant):
        assert prepare_document(occurred=value).document.occurred == instant


def test_chunks_cover_the_text_and_carry_their_place() -> None:
    text = "word " * 100
    chunks = prepare_document(text=text).chunks
    assert len(chunks) > 1
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert max(len(chunk.text) for chunk in chunks) <= 100
    assert chunks[-1].end == len(text)


def test_a_sequence_beyond_64_bits_is_refused() -> None:
    with pytest.raises(InvalidInput, match="64 bits"):
        prepare_document(sequence=2**63)
