"""Where tasks are: reading their documents as they are at one time, and writing those that go together."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Changed, NotFound, StorageBusy
from conspectus.facades.tasks.documents import (
    attachment_document,
    is_stale,
    is_task,
    restated,
    task_document,
    task_key,
)
from conspectus.facades.tasks.mapping import Attachment, Task
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.records import Document, NewDocument, Receipt, Source, Written
from conspectus.text.hashing import content_hash, stable_id

PAGE = 1_000
READINGS = 20


class TaskSource:
    """One source of tasks."""

    def __init__(self, engine: AnyEngine, *, collection: str, source: str) -> None:
        self._engine = engine
        self._collection = collection
        self._source = source

    async def documents(
        self,
        task: Task,
        stored: Document | None,
        children: Sequence[Document],
        attachment: Attachment | None = None,
    ) -> Sequence[NewDocument]:
        """A task's document, with what has to be written along with it, so that all are in step.

        Its number of attachments makes sure that none comes or goes unseen while the others are read.
        """
        number = len(children) + (attachment is not None)
        whole = [task_document(task, attachments=number, expected=stored.fingerprint if stored else None)]
        for child in (each for each in children if is_stale(each, task)):
            try:
                whole.append(restated(child, await self._engine.documents.text(child.id), task))
            except NotFound:
                raise Changed("attachment", child.key) from None
        if attachment is not None and stored is not None:
            whole.append(attachment_document(attachment, task, parent=stored.id))
        return whole

    async def add(self, documents: Sequence[NewDocument]) -> Mapping[str, Written]:
        """Write documents, and say what became of each by its id. Raises Changed."""
        written = await self._engine.documents.add(
            documents, source=self._source, collection=self._collection
        )
        return {each.id: each for each in written}

    async def delete(self, key: str) -> Receipt:
        """Delete the document of that key with its children; one that is unknown counts as nothing."""
        source = await self.found()
        return Receipt() if source is None else await self._engine.documents.delete(place_of(source, key))

    async def read(self, place: str, kind: str, name: str) -> tuple[Document, str]:
        """A document of ours and its text, as they were at one time. Raises NotFound."""
        try:
            document, text = await self._at_one_time(await self._engine.documents.get(place))
        except NotFound:
            raise NotFound(kind, name) from None
        if not is_task(document):
            raise NotFound(kind, name)
        return document, text

    async def _at_one_time(self, document: Document) -> tuple[Document, str]:
        for _ in range(READINGS):
            text = await self._engine.documents.text(document.id)
            if content_hash(text) == document.content_hash or not document.chunks:
                return document, text
            document = await self._engine.documents.get(document.id)
        raise StorageBusy(f"document {document.id} is written faster than it can be read; ask again")

    async def whole(self, documents: Iterable[Document]) -> Sequence[tuple[Document, str]]:
        """Those documents that are ours, with their texts, but for those that were deleted meanwhile."""
        ours = {each.id: each for each in documents if is_task(each)}
        ids, texts = list(ours), dict[str, str]()
        for start in range(0, len(ids), PAGE):
            texts |= await self._engine.documents.texts(ids[start : start + PAGE])
        whole = []
        for name, document in ours.items():
            if name in texts and content_hash(texts[name]) == document.content_hash:
                whole.append((document, texts[name]))
            elif name in texts:
                with suppress(NotFound):
                    whole.append(await self._at_one_time(document))
        return [(document, text) for document, text in whole if is_task(document)]

    async def children(self, source: Source, parents: Sequence[str]) -> Sequence[Document]:
        """The attachments of tasks."""
        found = await self.all(source, In("parent", tuple(parents))) if parents else []
        return [each for each in found if is_task(each)]

    async def all(self, source: Source, where: Filter) -> Sequence[Document]:
        """Every document of the source that matches."""
        found: list[Document] = []
        within, after = And((Eq("source", source.id), where)), None
        while True:
            page = await self._engine.documents.list(
                collection=source.collection, where=within, after=after, limit=PAGE
            )
            found += page.documents
            after = page.next
            if after is None:
                return found

    async def place(self, kind: str, name: str, key: str | None = None) -> tuple[Source, str]:
        """Where a task is, or would be. Raises NotFound where there can be none."""
        source = await self.found()
        if source is None:
            raise NotFound(kind, name)
        return source, place_of(source, task_key(name) if key is None else key)

    async def found(self) -> Source | None:
        """The source, if there is one to be seen."""
        try:
            return await self._engine.collections.get_source(self._source, collection=self._collection)
        except NotFound:
            return None

    async def made(self) -> Source:
        """The source, made if it is new."""
        return await self._engine.collections.get_or_create_source(
            self._source, collection=self._collection, kind="tasks"
        )


def place_of(source: Source, key: str) -> str:
    """The id of the document of that key."""
    return stable_id("document", source.id, key)
