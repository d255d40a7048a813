"""Bytes by their keys, as documents of one source."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.integrations.event_loop import Work
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

CODED = "base64:"
"""A text that begins so stands for the bytes that follow."""
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one source; those that are `searchable` and texts are kept as texts."""

    source: str
    collection: str
    searchable: bool = False

    async def get(self, engine: AnyEngine, keys: Sequence[str]) -> list[bytes | None]:
        """The values of keys, in their order; None for those that are not there."""
        home = await self._home(engine)
        if home is None:
            return [None] * len(keys)
        ids = [stable_id("document", home, key) for key in keys]
        asked, texts = list(dict.fromkeys(ids)), dict[str, str]()
        for start in range(0, len(asked), PAGE):
            texts |= await engine.documents.texts(asked[start : start + PAGE])
        return [self.decoded(texts[each]) if each in texts else None for each in ids]

    async def set(self, engine: AnyEngine, pairs: Iterable[tuple[str, bytes]]) -> None:
        """Set values; of a key that comes twice the last stays."""
        new = [self._document(checked_key(key), value) for key, value in dict(pairs).items()]
        if not new:
            return
        await engine.collections.get_or_create(self.collection, words_only=True, language="none")
        await engine.collections.get_or_create_source(self.source, collection=self.collection, kind="api")
        await engine.documents.add(new, source=self.source, collection=self.collection)

    async def delete(self, engine: AnyEngine, keys: Iterable[str]) -> None:
        """Delete keys; those that are not there are none."""
        home = await self._home(engine)
        if home is not None:
            await engine.documents.delete([stable_id("document", home, key) for key in keys])

    def page_of_keys(self, prefix: str, after: str) -> Work[tuple[list[str], str | None]]:
        """How to read the keys of a page that begin so, and the cursor of the next page (``: the first)."""

        async def work(engine: AnyEngine) -> tuple[list[str], str | None]:
            home = await self._home(engine)
            if home is None:
                return [], None
            where = Eq("source", home)
            page = await engine.documents.list(
                collection=self.collection, where=where, after=after or None, limit=PAGE
            )
            return [each.key for each in page.documents if each.key.startswith(prefix)], page.next

        return work

    async def _home(self, engine: AnyEngine) -> str | None:
        """The id of the source, if anything was stored in it."""
        try:
            return (await engine.collections.get_source(self.source, collection=self.collection)).id
        except NotFound:
            return None

    def _document(self, key: str, value: bytes) -> NewDocument:
        text = self.encoded(value)
        spans = ((0, len(text)),) if text.startswith(CODED) else ()
        return NewDocument(text, kind="page", key=key, spans=spans)

    def encoded(self, value: bytes) -> str:
        """The text that stands for a value."""
        if self.searchable:
            text = value.decode("utf-8", "replace")
            kept = text.encode() == value and clean(text) == text and bool(text.strip())
            if kept and not text.startswith(CODED):
                return text
        return CODED + base64.b64encode(value).decode("ascii")

    @staticmethod
    def decoded(text: str) -> bytes:
        """The value that a text stands for."""
        coded = text.startswith(CODED)
        return base64.b64decode(text.removeprefix(CODED)) if coded else text.encode()


def checked_key(key: str) -> str:
    """The key, if it can be stored as it is. Raises InvalidInput."""
    if clean(key) != key:
        raise InvalidInput("key", f"{key!r:.80} has characters that cannot be stored")
    return key
