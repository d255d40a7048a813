"""Values of keys: bytes that another program stores as documents of a source."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from conspectus.bridge.engine_access import Work
from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.integrations.one_source import OneSource, check_key
from conspectus.model.filter import Eq
from conspectus.model.records import Document, NewDocument
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

ENCODED_PREFIX = "base64:"
"""The prefix of a text that encodes bytes."""
LETTER_TABLES = str.maketrans("+/", "äö"), str.maketrans("äö", "+/")
"""With letters alone, an encoded value is one word, so that it takes no room in an index of words."""
KEYS_PER_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes with their key and metadata. One `below` another key, an empty value, is deleted with it."""

    key: str
    value: bytes
    metadata: Mapping[str, Any] = field(default_factory=dict)
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Values(OneSource):
    """The values of one source. With `searchable`, values that are texts are stored as texts."""

    searchable: bool = False

    async def get(self, engine: AnyEngine, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys in order; None for missing ones."""
        source = await self.id(engine)
        if source is None:
            return [None] * len(keys)
        ids = [stable_id("document", source, key) for key in keys]
        texts = await self.texts_of(engine, list(dict.fromkeys(ids)))
        return [self.decode(texts[document]) if document in texts else None for document in ids]

    async def read(self, engine: AnyEngine, documents: Sequence[Document]) -> dict[str, bytes]:
        """Return the values of documents by id, without those that were deleted meanwhile."""
        texts = await self.texts_of(engine, [document.id for document in documents])
        return {name: self.decode(text) for name, text in texts.items()}

    async def add(self, engine: AnyEngine, values: Iterable[Value]) -> None:
        """Set values, in one transaction for up to 500. Of duplicate keys, the last one is stored."""
        values_by_key = {value.key: value for value in values}
        above = dict.fromkeys(value.below for value in values_by_key.values() if value.below is not None)
        new = [*(Value(key, b"") for key in above), *values_by_key.values()]
        if not new:
            return
        await engine.collections.get_or_create(self.collection, words_only=True, language="none")
        source = await engine.collections.get_or_create_source(
            self.source, collection=self.collection, kind="api"
        )
        documents = [self._document(value, source.id) for value in new]
        await engine.documents.add(documents, source=self.source, collection=self.collection)

    def page_of_keys(self, prefix: str, after: str) -> Work[tuple[list[str], str | None]]:
        """Return a reader of a page of keys with a prefix, and the next cursor (``: the first page)."""

        async def work(engine: AnyEngine) -> tuple[list[str], str | None]:
            source = await self.id(engine)
            if source is None:
                return [], None
            where = Eq("source", source)
            page = await engine.documents.list(
                collection=self.collection, filter=where, after=after or None, limit=KEYS_PER_PAGE
            )
            return [document.key for document in page.documents if document.key.startswith(prefix)], page.next

        return work

    def _document(self, value: Value, source: str) -> NewDocument:
        text = self.encode(value.value)
        return NewDocument(
            text,
            key=check_key(value.key),
            metadata=value.metadata,
            spans=((0, len(text)),) if text.startswith(ENCODED_PREFIX) else (),
            parent=None if value.below is None else stable_id("document", source, value.below),
        )

    def encode(self, value: bytes) -> str:
        """Encode a value as text."""
        if self.searchable:
            text = value.decode("utf-8", "replace")
            is_unchanged = text.encode() == value and clean(text) == text and bool(text.strip())
            if is_unchanged and not text.startswith(ENCODED_PREFIX):
                return text
        return ENCODED_PREFIX + base64.b64encode(value).decode("ascii").translate(LETTER_TABLES[0])

    @staticmethod
    def decode(text: str) -> bytes:
        """Decode a value."""
        coded = text.startswith(ENCODED_PREFIX)
        if coded:
            return base64.b64decode(text.removeprefix(ENCODED_PREFIX).translate(LETTER_TABLES[1]))
        return text.encode()
