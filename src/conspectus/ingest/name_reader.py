"""Extract the entities of written passages, with one worker for each collection."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from conspectus.errors import (
    ConspectusError,
    ProviderError,
    ProviderUnavailable,
)
from conspectus.ingest.background_workers import BackgroundTask, PendingWork, Workers
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.memory import fact_ends, stored_entities
from conspectus.model.records import Document, Mention, PreparedChunk, PreparedDocument
from conspectus.ports import Progress
from conspectus.ports.graphs import SUBJECT, EntityExtractor, MentionStore, Unread
from conspectus.ports.jobs import Turn
from conspectus.text.name_keys import key_of

BATCH_PASSAGES = 100
MAX_GATHERED_BATCHES = 10
"""How many times in a row more passages may arrive before they are processed."""
MAX_PASSAGE_NAMES = 100
"""So many different names of a passage are kept; a longer list of them connects nothing."""
MAX_TITLE_WORDS = 8
"""A title of more words is a statement, not a name."""

_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ENDS = re.compile(r"[?!\n]")


def title_names(title: str) -> list[Mention]:
    """The name that a title is, with and without the words in brackets after it."""
    if not title.strip() or len(title.split()) > MAX_TITLE_WORDS or _ENDS.search(title):
        return []
    bare = _ASIDE.sub("", title)
    spelt = {key_of(name): name for name in (title, bare) if name.strip()}
    return [Mention(0, 0, name.strip(), key, SUBJECT) for key, name in spelt.items() if key]


class NameReader(Workers):
    """Starts, watches and stops the readers of one engine."""

    def __init__(self, names: MentionStore, turn: Turn, extractor: Callable[[], EntityExtractor]) -> None:
        super().__init__(turn, "looking for names")
        self._names = names
        self._make = extractor
        self._extractor: EntityExtractor | None = None
        self._refused: dict[str, ProviderError] = {}

    def extractor(self) -> EntityExtractor:
        """The entity extractor, created on first use."""
        if self._extractor is None:
            self._extractor = self._make()
        return self._extractor

    def wake(self, collection: CollectionId) -> PendingWork:
        """Make sure that a reader is running that will see everything committed before this call."""
        if not self.of(collection).runs:
            self._refused.pop(collection, None)
        waits = partial(self._names.has_unread, collection)
        chore = BackgroundTask(waits, partial(self._read, collection), MAX_GATHERED_BATCHES)
        return self.start(collection, chore)

    def problem(self, collection: CollectionId) -> ConspectusError | None:
        """Why the last worker of the collection stopped, or a passage could not be processed."""
        return self.of(collection).error or self._refused.get(collection)

    async def wait_until_done(self, collection: CollectionId, progress: Progress | None = None) -> int:
        """Wait until all passages are processed; return how many were. Raises the worker's error."""
        total = partial(self._names.count_unread, collection)
        read = await self.until_done(self.wake(collection), total, progress)
        if problem := self.problem(collection):
            raise problem
        return read

    async def close(self) -> None:
        """Stop all readers; what they did not finish is found again at the next start."""
        await super().close()
        if self._extractor is not None:
            await self._extractor.close()

    async def with_mentions(self, batch: list[PreparedDocument]) -> list[PreparedDocument]:
        """The batch with the mentions in its chunks; without any if a text fails, which is tried again."""
        unread = [_unread(document.document, chunk) for document in batch for chunk in document.chunks]
        try:
            texts = await self.extractor().extract([chunk.text for chunk in unread])
        except (ConspectusError, OSError):
            return batch
        chunk_mentions = map(_mentions_of, unread, texts)
        return [
            replace(document, mentions=list(islice(chunk_mentions, len(document.chunks))))
            for document in batch
        ]

    async def _read(self, collection: CollectionId, work: PendingWork) -> None:
        while batch := await self._names.unread(collection, limit=BATCH_PASSAGES):
            mentions = await self._extract_mentions(collection, batch)
            names = {chunk.chunk: named for chunk, named in zip(batch, mentions, strict=True)}
            await self._names.put(collection, names)
            work.done += len(batch)
            if len(batch) < BATCH_PASSAGES and not await work.gather(MAX_GATHERED_BATCHES):
                return

    async def _extract_mentions(
        self, collection: CollectionId, batch: Sequence[Unread]
    ) -> list[list[Mention]]:
        """The names in each; a refused text has only those of its title, and that is logged."""
        try:
            texts = await self.extractor().extract([chunk.text for chunk in batch])
        except ProviderUnavailable:
            raise
        except ProviderError as refusal:
            if refusal.verdict != "text":
                raise
            if len(batch) > 1:
                return [
                    names for chunk in batch for names in await self._extract_mentions(collection, [chunk])
                ]
            self._refused[collection] = refusal
            texts = [()]
        return [_mentions_of(chunk, names) for chunk, names in zip(batch, texts, strict=True)]


def _unread(document: Document, chunk: PreparedChunk) -> Unread:
    """A chunk without a number yet."""
    if chunk.position:
        return Unread(ChunkId(0), "", chunk.text)
    metadata = document.metadata if document.kind in {"memory", "version"} else {}
    return Unread(ChunkId(0), document.title, chunk.text, fact_ends(metadata), stored_entities(metadata))


def _mentions_of(unread: Unread, extracted: Sequence[Mention]) -> list[Mention]:
    first: dict[str, Mention] = {}
    about = [Mention(0, 0, name, key_of(name), SUBJECT) for name in unread.about]
    stored = [Mention(0, 0, name, key_of(name), "entity") for name in unread.entities]
    for mention in (*title_names(unread.title), *about, *extracted, *stored):
        if mention.key:
            first.setdefault(mention.key, mention)
    return list(first.values())[:MAX_PASSAGE_NAMES]
