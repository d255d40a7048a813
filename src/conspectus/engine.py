"""Every operation of Conspectus, a few lines each: check access, call one pipeline."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from conspectus.access.policy import narrowed, visible
from conspectus.errors import InvalidInput, NotFound
from conspectus.ingest.backfill import Backfill, Turn
from conspectus.ingest.files import Intake, Kept, Root, placed, take_in
from conspectus.ingest.pipeline import batches, write
from conspectus.ingest.prepare import Preparation, named
from conspectus.ingest.shelves import OpenIndex, Shelves
from conspectus.ingest.upkeep import check, collection_status, move
from conspectus.ingest.upkeep import purge as purge_files
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.model.filter import EVERYTHING, Filter, document_row, matches
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.query import Budget, Query
from conspectus.model.records import (
    Collection,
    Document,
    EmbeddingSpace,
    NewDocument,
    Receipt,
    Source,
    Written,
)
from conspectus.model.reports import CheckReport, FilesReport, Page, Status
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.ports import Clock, CountTokens, Embedder, Files, Index, Progress, Records
from conspectus.retrieval.plan import asked
from conspectus.retrieval.search import Looking, search
from conspectus.settings import Settings
from conspectus.text.hashing import stable_id
from conspectus.window.pack import build_window
from conspectus.window.render import renderer_named

LIST_LIMIT = 1_000
FEWEST = 50
SHORT = 40
"""A window asks for one hit per so many tokens, and for more only where that does not fill it."""
FULL = 0.95


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is put together from; `bootstrap` chooses, tests may choose otherwise.

    `embedder_named` makes the embedder of a setting, `embedder_for` the one of a space (None: it cannot
    be had here), `size` says how many bytes the store takes, `forget_index` deletes a space's index.
    """

    path: str
    version: str
    settings: Settings
    records: Records
    files: Files
    clock: Clock
    turn: Turn
    open_index: OpenIndex
    embedder_named: Callable[[str], Embedder | None]
    embedder_for: Callable[[EmbeddingSpace], Embedder | None]
    counter: Callable[[str], CountTokens]
    size: Callable[[], int]
    forget_index: Callable[[Collection, EmbeddingSpace | None], Awaitable[None]]


class Engine:
    """The whole product on one store. Open it with `conspectus.open`; it is safe to use from many tasks."""

    def __init__(self, parts: Parts, person: Person = LOCAL_OWNER) -> None:
        self._parts = parts
        self._person = person
        self._records = parts.records
        self._shelves = Shelves(parts.records, parts.open_index)
        self._queue = Backfill(parts.records, parts.turn)
        self._known: dict[str, Collection] = {}

    async def collection(
        self, name: str = "default", *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """The collection of that name, made with the embedder of the settings if it is new.

        `language` is a Snowball language or `none`; it and `words_only` matter only when it is made.
        """
        found = await self._records.collection(name)
        if found is not None:
            return found
        embedder = None if words_only else self._parts.embedder_named(self._parts.settings.embedder)
        chosen = self._parts.settings.language if language is None else language
        made = Collection(
            id=CollectionId(stable_id("collection", name)),
            name=named("collection", name),
            space=embedder.space if embedder else None,
            language=None if chosen == "none" else chosen,
            created=self._parts.clock(),
        )
        return await self._records.create_collection(made)

    async def source(
        self, name: str, *, collection: str = "default", metadata: Mapping[str, Any] | None = None
    ) -> Source:
        """The source of that name, made if it is new; `metadata`, where given, replaces what it has."""
        place = await self.collection(collection)
        found = {each.name: each for each in await self._records.sources(place.id)}.get(name)
        if found is not None and metadata is None:
            return found
        source_id = SourceId(stable_id("source", place.id, name))
        return await self._records.put_source(
            Source(source_id, place.id, named("source", name), metadata or {})
        )

    async def sources(self, *, collection: str = "default") -> Sequence[Source]:
        """All sources of a collection, by name."""
        return await self._records.sources((await self._existing(collection)).id)

    async def add(
        self,
        documents: str | NewDocument | Iterable[str | NewDocument],
        *,
        source: str = "default",
        collection: str = "default",
        wait: bool = False,
        progress: Progress | None = None,
    ) -> list[Written]:
        """Store documents: found by their words at once, by meaning when embedded (`wait=True`: on return).

        A document with the key of a stored one replaces it atomically. Documents are written in batches of
        at most 500, each a transaction. Raises InvalidInput or TooLarge; the batch at fault is not written.
        """
        given = [documents] if isinstance(documents, str | NewDocument) else documents
        place = await self.source(source, collection=collection)
        home = await self._existing(collection)
        embedder = await self._embedder(home)
        written: list[Written] = []
        for batch in batches(NewDocument(text=each) if isinstance(each, str) else each for each in given):
            written += await self._write(batch, place)
            if embedder is not None:
                self._queue.wake(home, embedder)
            if progress is not None:
                progress("writing", len(written), 0)
        await self._embed(collection, wait=wait, progress=progress)
        return written

    async def add_files(
        self,
        paths: Iterable[str | Path],
        *,
        source: str | None = None,
        collection: str = "default",
        prune: bool = False,
        wait: bool = True,
        progress: Progress | None = None,
    ) -> FilesReport:
        """Store files and folders; unchanged ones are skipped, failures reported at the end.

        Each folder is a source of its own unless `source` names one. `prune` deletes what came from files
        that are gone. Raises UnreadableFile for a path that does not exist.
        """
        await self.collection(collection)
        intake = Intake(self._parts.files, self._write, progress)
        roots = []
        for path in paths:
            whole, name, prefix = placed(path, source)
            roots.append(Root(whole, await self.source(name, collection=collection), prefix))
        pages = partial(self.list, collection=collection, limit=LIST_LIMIT)
        report = await take_in(intake, roots, Kept(pages, self.delete), prune=prune)
        await self._embed(collection, wait=wait, progress=progress)
        return report

    async def settle(self, *, collection: str = "default", progress: Progress | None = None) -> int:
        """Wait until every chunk has its vector; returns how many came meanwhile."""
        place = await self._existing(collection)
        embedder = await self._embedder(place)
        return 0 if embedder is None else await self._queue.settle(place, embedder, progress)

    async def get(self, document: str) -> Document:
        """A document's fields. Raises NotFound."""
        found = await self._visible([document])
        if not found:
            raise NotFound("document", document)
        return found[0]

    async def text(self, document: str) -> str:
        """A document's full text. Raises NotFound."""
        return await self._records.text((await self.get(document)).id)

    async def list(
        self,
        *,
        collection: str = "default",
        where: Filter = EVERYTHING,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """A page of documents that match, in order of recording; `after` is the page before's `next`."""
        if not 1 <= limit <= LIST_LIMIT:
            raise InvalidInput("limit", f"must be from 1 to {LIST_LIMIT}")
        place = await self._existing(collection)
        allowed = narrowed(self._person, where)
        documents, cursor = await self._records.list(place.id, allowed, after=after, limit=limit)
        return Page(tuple(documents), cursor)

    async def count(self, *, collection: str = "default", where: Filter = EVERYTHING) -> int:
        """How many documents match."""
        place = await self._existing(collection)
        return await self._records.count(place.id, narrowed(self._person, where))

    async def update(self, /, document: str, **changes: Any) -> Written:
        """Change any fields of a document but `key`; a new text replaces the old one atomically."""
        stored = await self.get(document)
        unknown = changes.keys() - (NewDocument.__dataclass_fields__.keys() - {"key"})
        if unknown:
            raise InvalidInput(min(unknown), "is not a field that can be changed")
        fields = {name: getattr(stored, name) for name in NewDocument.__dataclass_fields__ if name != "text"}
        text = changes.pop("text", None)
        current = NewDocument(text=await self._records.text(stored.id) if text is None else text, **fields)
        source = Source(stored.source, stored.collection, name="")
        written = await self._write([replace(current, **changes)], source)
        await self.resume(stored.collection)
        return written[0]

    async def delete(self, documents: str | Iterable[str], *, purge: bool = False) -> Receipt:
        """Delete documents with their children, chunks and vectors, and say how many; unknown ids count 0.

        They are out of every answer when this returns. `purge` also waits until no file holds them.
        """
        asked = [documents] if isinstance(documents, str) else list(documents)
        found = await self._visible(asked)
        receipt = await self._records.delete([each.id for each in found])
        if purge:
            await purge_files(self._records, self._shelves, {each.collection for each in found})
        return replace(receipt, purged=purge)

    async def delete_where(
        self, where: Filter, *, collection: str = "default", purge: bool = False
    ) -> Receipt:
        """Delete every document that matches."""
        total = Receipt()
        while page := (await self.list(collection=collection, where=where, limit=LIST_LIMIT)).documents:
            one = await self.delete([each.id for each in page])
            total = Receipt(
                total.documents + one.documents, total.chunks + one.chunks, total.vectors + one.vectors
            )
        if purge:
            await purge_files(self._records, self._shelves, {(await self._existing(collection)).id})
        return replace(total, purged=purge)

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question, best first, each with the parts of its score.

        `fields` are those of Query. Raises NotFound for an unknown collection.
        """
        return await self._search(asked(query, fields, self._parts.settings))

    async def window(
        self, /, query: str | Query, budget: int | Budget, *, renderer: str = "text", **fields: Any
    ) -> ContextWindow:
        """The right context for a question, rendered, never over the budget, with a reason for everything.

        `renderer` is text, xml, json or messages. Unless `limit` is given, as many hits are looked at as it
        takes to fill the budget.
        """
        wanted = Budget(budget) if isinstance(budget, int) else budget
        count = self._parts.counter(wanted.tokenizer)
        chosen = renderer_named(renderer)
        most = self._parts.settings.max_limit
        limit = min(max(FEWEST, wanted.tokens // SHORT), most)
        while True:
            found = await self._search(asked(query, {"limit": limit, **fields}, self._parts.settings))
            start = perf_counter()
            window = build_window(found, wanted, chosen, count)
            took = {"pack and render": (perf_counter() - start) * 1_000}
            enough = window.tokens >= FULL * window.allowed or len(found.hits) < limit
            if enough or "limit" in fields or limit == most:
                return replace(window, timings={**window.timings, **took})
            limit = min(4 * limit, most)

    async def explain(
        self, /, query: str | Query, budget: int | Budget, *, document: str | None = None, **fields: Any
    ) -> ContextWindow:
        """A window whose trace also has the chunks of one document, whether they were found or not."""
        stored = None if document is None else await self.get(document)
        wanted = Budget(budget) if isinstance(budget, int) else budget
        everything = {"limit": self._parts.settings.max_limit, **fields}
        found = await self._search(asked(query, everything, self._parts.settings), also=stored)
        ranked = {hit.document.id for hit in (*found.hits, *found.below_floor)}
        if stored is not None and stored.id not in ranked:
            why = "the filter leaves it out" if stored.chunks else "it has no text"
            found = replace(found, notices=(*found.notices, f"{stored.id} was not ranked: {why}"))
        return build_window(found, wanted, renderer_named("text"), self._parts.counter(wanted.tokenizer))

    async def status(self, *, collection: str | None = None) -> Status:
        """Sizes and counts of one collection or of all."""
        chosen = [await self._existing(collection)] if collection else await self._records.collections()
        found = [await collection_status(self._records, self._shelves, each) for each in chosen]
        return Status(self._parts.path, self._parts.version, self._parts.size(), tuple(found))

    async def check(self) -> CheckReport:
        """Compare records and indexes, and let the database check itself; reports, repairs nothing."""
        return await check(self._records, self._shelves)

    async def reindex(self, *, collection: str = "default", progress: Progress | None = None) -> None:
        """Build the collection's index anew from the records; the old one answers meanwhile."""
        shelf = await self._shelves.current(await self._existing(collection))
        await shelf.index.rebuild(progress)

    async def reembed(
        self, embedder: str, *, collection: str = "default", progress: Progress | None = None
    ) -> int:
        """Move a collection to another embedder's space and say how many vectors were made for it.

        The old space answers until every vector and the index over them are there. A run that was killed
        goes on where it was when it is called again.
        """
        place = await self._existing(collection)
        new = self._parts.embedder_named(embedder)
        if new is None:
            raise InvalidInput("embedder", "a collection can move to another embedder, not to none")
        _, old = await self._records.state(place.id)
        if old == new.space:
            return await self.settle(collection=collection, progress=progress)
        made = await move(self._records, self._shelves, place, new, progress=progress)
        await self._parts.forget_index(place, old)
        await self._embed(collection, wait=True)
        return made

    async def close(self) -> None:
        """Stop background work and release every store; what is unfinished goes on at the next opening."""
        await self._queue.close()
        await self._shelves.close()
        await self._records.close()

    async def resume(self, collection: CollectionId | None = None) -> None:
        """Go on embedding what has no vector yet, in one collection or in all."""
        for each in await self._records.collections():
            if collection in {None, each.id}:
                await self._embed(each.name, wait=False)

    async def _search(self, query: Query, also: Document | None = None) -> Retrieval:
        place = await self._existing(query.collection)
        start = perf_counter()
        shelf = await self._shelves.current(place)
        followed = {"follow the records": (perf_counter() - start) * 1_000}
        embedder = self._parts.embedder_for(shelf.space) if shelf.space else None

        async def refreshed() -> Index:
            return (await self._shelves.current(place)).index

        where = narrowed(self._person, query.where)
        extra = await self._records.document_chunks(also.id) if also else ()
        looking = Looking(
            index=shelf.index,
            refreshed=refreshed,
            hydrate=self._records.hydrate,
            embedder=embedder or "the collection has no vectors, or no embedder for them is set here",
            where=where,
        )
        found = await search(query, looking, also=[each.chunk.id for each in extra])
        found = replace(found, timings={**followed, **found.timings})
        problem = self._queue.problem(place)
        return replace(found, notices=(*found.notices, str(problem))) if problem else found

    async def _existing(self, name: str) -> Collection:
        """A collection's id, name and language never change, so it is read once."""
        found = self._known.get(name) or await self._records.collection(name)
        if found is None:
            raise NotFound("collection", name)
        self._known[name] = found
        return found

    async def _visible(self, ids: Sequence[str]) -> Sequence[Document]:
        found = await self._records.documents([DocumentId(each) for each in ids])
        allowed = visible(self._person)
        return [each for each in found if matches(allowed, document_row(each))]

    async def _write(self, batch: Sequence[NewDocument], source: Source) -> Sequence[Written]:
        parts = self._parts
        by = Preparation.under(parts.settings, source, count=parts.counter("o200k_base"), now=parts.clock())
        written = await write(self._records, batch, by)
        await self._shelves.keep_up(source.collection)
        return written

    async def _embedder(self, collection: Collection) -> Embedder | None:
        _, space = await self._records.state(collection.id)
        return None if space is None else self._parts.embedder_for(space)

    async def _embed(self, name: str, *, wait: bool, progress: Progress | None = None) -> None:
        collection = await self._existing(name)
        embedder = await self._embedder(collection)
        if embedder is None:
            return
        if wait:
            await self._queue.settle(collection, embedder, progress)
        elif await self._records.count_unembedded(collection.id, embedder.space):
            self._queue.wake(collection, embedder)
