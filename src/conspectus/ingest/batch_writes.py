"""Write prepared documents in batches, each in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias, TypeVar

from conspectus.errors import (
    ConspectusError,
    ProviderError,
)
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, prepare
from conspectus.ingest.quarantine import texts_beside
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.ids import DocumentId
from conspectus.model.index import WriteResult, passage
from conspectus.model.memory import NewMemory
from conspectus.model.pages import portions
from conspectus.model.quarantine import as_given, quarantine_pattern
from conspectus.model.records import (
    Document,
    NewDocument,
    PreparedDocument,
    Written,
)
from conspectus.model.trust import HIGHEST, least, least_trusted
from conspectus.ports import Embedder, Records
from conspectus.ports.jobs import on_behalf_of
from conspectus.text.attack_patterns import attack_pattern
from conspectus.text.vectors import pack_rows

New = TypeVar("New", NewDocument, NewMessage, NewCaption, NewMemory)

BATCH_DOCUMENTS = 500
BATCH_CHARACTERS = 4_000_000
MAX_INLINE_CHARACTERS = 2_000
"""Texts of fewer characters are prepared faster than they are handed to a thread."""


def batches(documents: Iterable[New]) -> Iterator[list[New]]:
    """The documents in their order, in batches bounded by number and by size of text."""
    return portions(
        documents, lambda document: len(document.text), most=BATCH_DOCUMENTS, room=BATCH_CHARACTERS
    )


Complete: TypeAlias = Callable[[list[PreparedDocument]], Awaitable[list[PreparedDocument]]]
"""Gives documents what is made of their chunks, as far as it can be made now."""

ListEditable: TypeAlias = Callable[[], Awaitable[tuple[str, ...]]]
"""Returns the ids of the sources of the collection that the writer may edit, or `*` for all."""


async def write(
    records: Records,
    batch: Sequence[NewDocument],
    by: Preparation,
    *,
    if_match: str | None = None,
    complete: Complete | None = None,
    list_editable: ListEditable | None = None,
) -> WriteResult:
    """Write a batch in one transaction; documents that are stored just so already cost nothing.

    With `if_match`, every document must be stored with that fingerprint. A few short texts are made
    `complete`. With `list_editable`, statements about other documents are stored with the sources that the
    writer may edit. Raises InvalidInput, TooLarge, NotFound or PreconditionFailed, with the document's place
    as a note; then nothing is written.
    """
    screen = by.screen
    if screen is not None:
        batch = await asyncio.to_thread(screen.all, batch)
    is_short = sum(len(document.text) for document in batch) <= MAX_INLINE_CHARACTERS
    described = _describe_all(batch, by) if is_short else await asyncio.to_thread(_describe_all, batch, by)
    # One without a key has a new id.
    keyed = [document.id for new, (document, _) in zip(batch, described, strict=True) if new.key is not None]
    stored = await records.documents(keyed) if keyed else ()
    before = {document.id: document for document in stored}
    described, earlier = _beside_earlier(batch, described, before, by)
    fresh = [
        (new, document, vector)
        for new, (document, vector), version in zip(batch, described, earlier, strict=True)
        if (new.if_match if if_match is None else if_match) is not None
        or version is None
        or version.fingerprint != document.fingerprint
        or version.status == "error"
    ]
    if is_short:
        prepared = _prepare_all(fresh, by, if_match)
    else:
        prepared = await asyncio.to_thread(_prepare_all, fresh, by, if_match)
    if list_editable is not None and any(document.statements for document in prepared):
        editable = await list_editable()
        prepared = [replace(document, editable=editable) for document in prepared]
    if is_short and complete is not None:
        prepared = await complete(prepared)
    result = await records.write(prepared) if prepared else WriteResult(())
    written = {outcome.id: outcome for outcome in result.written}
    done = [
        _report(written.get(document.id) or _report_unchanged(document.id, before), document)
        for document, _ in described
    ]
    return replace(result, written=done)


def _beside_earlier(
    batch: Sequence[NewDocument],
    described: Sequence[tuple[Document, bytes | None]],
    stored: Mapping[DocumentId, Document],
    by: Preparation,
) -> tuple[list[tuple[Document, bytes | None]], list[Document | None]]:
    """Describe a batch at most at the levels of earlier versions, and return these as well.

    The earlier version of a document is an earlier one in the batch with its key, or else the stored one.
    """
    latest = dict(stored)
    lowered, earlier = [], []
    for new, description in zip(batch, described, strict=True):
        version = latest.get(description[0].id)
        description = beside_stored(new, description, version, by)
        latest[description[0].id] = description[0]
        lowered.append(description)
        earlier.append(version)
    return lowered, earlier


def beside_stored(
    new: NewDocument, described: tuple[Document, bytes | None], stored: Document | None, by: Preparation
) -> tuple[Document, bytes | None]:
    """Describe a document at most at the level of the stored one of its key.

    It is not quarantined for a text of the stored one that is in results already, and only a review raises
    the level of the stored one or ends its quarantine for the same text.
    """
    if stored is None or by.reviewed:
        return described
    level = as_given(stored).trust
    if is_above(described[0], stored):
        lowest = new.trust if new.trust == "quarantined" else least(new.trust, level)
        new = replace(new, origin=least_trusted(new.origin, stored.origin), trust=lowest)
        described = describe(new, by)
    document = described[0]
    if document.kind != "quarantined" or stored.kind == "quarantined" or new.trust == "quarantined":
        return described
    fresh = set(texts_beside(as_given(document))) - set(texts_beside(stored))
    seen = stored.content_hash == document.content_hash and attack_pattern(*fresh) is None
    return describe(new, replace(by, reviewed=True)) if seen else described


def is_above(document: Document, stored: Document) -> bool:
    """Return whether a document would raise the level or the origin of the stored one."""
    levels = (as_given(document).trust, as_given(stored).trust)
    origins = (HIGHEST[document.origin], HIGHEST[stored.origin])
    return any(least(new, old) != new for new, old in (levels, origins))


def _describe_all(batch: Sequence[NewDocument], by: Preparation) -> list[tuple[Document, bytes | None]]:
    described = []
    for number, new in enumerate(batch):
        try:
            described.append(describe(new, by))
        except ConspectusError as fault:
            fault.add_note(f"document {number + 1} of {len(batch)}, key {new.key!r}")
            raise
    return described


def _prepare_all(
    fresh: Sequence[tuple[NewDocument, Document, bytes | None]], by: Preparation, if_match: str | None
) -> list[PreparedDocument]:
    prepared = []
    for new, document, vector in fresh:
        expected = new.if_match if if_match is None else if_match
        try:
            prepared.append(prepare(new, document, by, vector=vector, if_match=expected))
        except ConspectusError as fault:
            fault.add_note(f"document with the key {new.key!r}")
            raise
    return prepared


async def embed_batch(embedder: Embedder, batch: list[PreparedDocument]) -> list[PreparedDocument]:
    """The batch with vectors; without them where the model fails, as the texts are stored in any case."""
    wanting = [() if document.vector is not None else document.chunks for document in batch]
    texts = [
        passage(document.document, chunk.text_with_header)
        for document, chunks in zip(batch, wanting, strict=True)
        for chunk in chunks
    ]
    if not texts:
        return batch
    try:
        with on_behalf_of(None):
            vectors = await embedder.embed_documents(texts)
    except ProviderError:
        return batch
    rows, space = iter(pack_rows(vectors)), embedder.space.name
    vectors_by_document = [
        (space, tuple(islice(rows, len(chunks)))) if chunks else None for chunks in wanting
    ]
    return [
        replace(document, embedded=document_vectors)
        for document, document_vectors in zip(batch, vectors_by_document, strict=True)
    ]


def _report(written: Written, document: Document) -> Written:
    pattern = quarantine_pattern(document)
    if pattern is None:
        return written
    return replace(written, quarantined=pattern)


def _report_unchanged(document: DocumentId, stored: dict[DocumentId, Document]) -> Written:
    return Written(id=document, outcome="unchanged", chunks=stored[document].chunks)
