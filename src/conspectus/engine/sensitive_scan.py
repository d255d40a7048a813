"""Searches stored texts, in all columns in which people write, for secrets and personal data."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import includes_role
from conspectus.engine.service import Service
from conspectus.ingest.quarantine import strings_in
from conspectus.ingest.sensitive import Screen
from conspectus.ingest.sensitive_spans import SensitiveSpan, find_sensitive
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document
from conspectus.model.sensitive_reports import (
    CATEGORIES,
    ColumnText,
    SensitiveCategory,
    SensitivePlace,
    SensitiveReport,
)
from conspectus.model.text_columns import WRITTEN, columns_of

DOCUMENTS_AT_ONCE: Final = 200
_FIELDS: Final = tuple(name for name, rule in columns_of("documents") if rule.screening in WRITTEN)
_MASK: Final = Screen(dict.fromkeys(CATEGORIES, "mask"))


class SensitiveScan(Service, checked=False):
    """Searches the texts that one person may read."""

    async def report(
        self, access: CollectionAccess, categories: Sequence[SensitiveCategory], limit: int
    ) -> SensitiveReport:
        """Count secrets and personal data, and list the first places without texts. Raises MissingExtra."""
        scanned, places = 0, list[SensitivePlace]()
        counts, documents = Counter[SensitiveCategory](), Counter[SensitiveCategory]()
        async for page in self._documents(access):
            texts = await self._authorized.texts(page)
            for document_places in await asyncio.to_thread(_places_in_documents, page, texts, categories):
                counts.update(place.category for place in document_places)
                documents.update({place.category for place in document_places})
                places += document_places[: max(0, limit - len(places))]
            scanned += len(page)
        async for rows in self._authorized.column_texts(access):
            row_places = await asyncio.to_thread(_places_in_rows, rows, categories)
            counts.update(place.category for place in row_places)
            places += row_places[: max(0, limit - len(places))]
        return SensitiveReport(scanned, documents, counts, tuple(places))

    async def _documents(self, access: CollectionAccess) -> AsyncIterator[Sequence[Document]]:
        """Yield pages of the readable documents, and for managers of the quarantined ones."""
        after: str | None = None
        while True:
            page, after = await self._authorized.list(
                access, EVERYTHING, after=after, limit=DOCUMENTS_AT_ONCE
            )
            yield page
            if after is None:
                break
        if includes_role(access.roles.collection, "manager"):
            async for page in self._authorized.read_quarantined(access, EVERYTHING):
                yield page


def _places_in_documents(
    page: Sequence[Document], texts: Mapping[DocumentId, str], categories: Sequence[SensitiveCategory]
) -> list[list[SensitivePlace]]:
    """Return the places of secrets and personal data in each document: its text and its fields."""
    return [list(_places_in(document, texts.get(document.id, ""), set(categories))) for document in page]


def _places_in(document: Document, text: str, categories: Set[SensitiveCategory]) -> Iterator[SensitivePlace]:
    title = _MASK.in_report(document.title)
    for span in find_sensitive(text, categories):
        yield _report_place(span, "chunks.text", document.id, document.id, title)
    for field in _FIELDS:
        for written in strings_in(getattr(document, field)):
            for span in find_sensitive(written, categories):
                yield _report_place(span, f"documents.{field}", document.id, document.id, title)


def _places_in_rows(
    texts: Iterable[ColumnText], categories: Sequence[SensitiveCategory]
) -> list[SensitivePlace]:
    """Return the places in texts of other tables. Row ids are masked: that of a node may be a secret."""
    return [
        _report_place(span, text.column, _MASK.in_report(text.row))
        for text in texts
        for span in find_sensitive(text.text, categories)
    ]


def _report_place(
    span: SensitiveSpan, column: str, row: str, document: DocumentId | None = None, title: str = ""
) -> SensitivePlace:
    name = DocumentId("") if document is None else document
    return SensitivePlace(name, title, span.category, span.kind, span.start, span.end, column, row)
