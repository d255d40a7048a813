"""add → split → Records, in batches that are each one transaction."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from conspectus.errors import ConspectusError
from conspectus.ingest.prepare import Preparation, describe, prepare
from conspectus.model.channels import NewMessage
from conspectus.model.ids import DocumentId
from conspectus.model.memory import NewMemory
from conspectus.model.records import Document, NewDocument, PreparedDocument, Written
from conspectus.model.streams import NewCaption
from conspectus.ports import Records

New = TypeVar("New", NewDocument, NewMessage, NewCaption, NewMemory)

BATCH_DOCUMENTS = 500
BATCH_CHARACTERS = 4_000_000
SHORT = 2_000
"""Texts of so many characters are prepared sooner than handed to another thread."""


def batches(documents: Iterable[New]) -> Iterator[list[New]]:
    """What is given, in its order, in batches bounded by number and by size of text."""
    batch: list[New] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == BATCH_DOCUMENTS or size + len(document.text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.text)
    if batch:
        yield batch


async def write(
    records: Records,
    batch: Sequence[NewDocument],
    by: Preparation,
    *,
    expected: str | None = None,
    stored: Sequence[Document] | None = None,
) -> list[Written]:
    """Write a batch in one transaction; documents that are stored just so already cost nothing.

    `stored` are those of them that were just read, if they were. With `expected`, every document must be
    stored with that fingerprint. Raises InvalidInput, TooLarge,
    NotFound or Changed, with the document's place as a note; then nothing is written.
    """
    is_short = sum(len(each.text) for each in batch) <= SHORT
    described = _describe_all(batch, by) if is_short else await asyncio.to_thread(_describe_all, batch, by)
    if stored is None:
        stored = await records.documents([each.id for each in described])
    known = {document.id: document for document in stored}
    fresh = [
        (new, document)
        for new, document in zip(batch, described, strict=True)
        if (new.expected if expected is None else expected) is not None
        or document.id not in known
        or known[document.id].fingerprint != document.fingerprint
    ]
    if is_short:
        prepared = _prepare_all(fresh, by, expected)
    else:
        prepared = await asyncio.to_thread(_prepare_all, fresh, by, expected)
    written = {each.id: each for each in await records.write(prepared)} if prepared else {}
    return [written.get(document.id) or _unchanged(document.id, known) for document in described]


def _describe_all(batch: Sequence[NewDocument], by: Preparation) -> list[Document]:
    described = []
    for place, new in enumerate(batch):
        try:
            described.append(describe(new, by))
        except ConspectusError as fault:
            fault.add_note(f"document {place + 1} of {len(batch)}, key {new.key!r}")
            raise
    return described


def _prepare_all(
    fresh: Sequence[tuple[NewDocument, Document]], by: Preparation, expected: str | None
) -> list[PreparedDocument]:
    return [
        prepare(new, document, by, expected=new.expected if expected is None else expected)
        for new, document in fresh
    ]


def _unchanged(document: DocumentId, known: dict[DocumentId, Document]) -> Written:
    return Written(id=document, outcome="unchanged", chunks=known[document].chunks)
