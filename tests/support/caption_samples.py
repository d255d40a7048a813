"""Captions for tests that need no store."""

from datetime import UTC, datetime, timedelta

from conspectus.model.captions import Caption
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, Period

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def caption(
    text: str,
    start: float | None = None,
    end: float | None = None,
    *,
    index: int | None = None,
    key: str | None = None,
    speaker: str | None = None,
) -> Caption:
    """A caption as a store gives it back; its id is its key, by default its index, else its text."""
    name = key or (text if index is None else str(index))
    last = start if end is None else end
    document = Document(
        id=DocumentId(name),
        collection=CollectionId("c"),
        source=SourceId("s"),
        kind="caption",
        key=name,
        title="",
        content_hash=text,
        fingerprint=f"{name} {text}",
        recorded=EPOCH,
        updated=EPOCH,
        author=speaker,
        occurred=None
        if start is None or last is None
        else Period(EPOCH + timedelta(seconds=start), EPOCH + timedelta(seconds=last)),
        sequence=index,
        thread="captions",
    )
    return Caption(document, text, start, last)
