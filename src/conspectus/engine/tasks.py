"""Tasks with attachments: storage, vector search and rendering for a prompt.

A task is one document under the caller's id. An attachment is its child, so it is deleted with the task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Unpack

from conspectus.chat.task_lines import NO_TASKS, TaskLine, render_tasks
from conspectus.engine.task_documents import (
    apply_changes,
    attachment_document,
    attachment_key,
    check_attachment,
    check_task,
    is_stale,
    is_task,
    parse_priority,
    parse_status,
    task_document,
    task_key,
    to_attachment,
    to_task,
    with_task_state,
)
from conspectus.engine.task_search import TaskEngine, TaskQuery, find_nearest
from conspectus.errors import (
    InvalidInput,
    NotFound,
    PreconditionFailed,
    StorageBusy,
)
from conspectus.model.annotations import Example, Range
from conspectus.model.filter import And, Eq, Exists, Filter, In, Not, with_min_trust
from conspectus.model.ids import DocumentId
from conspectus.model.pages import pages
from conspectus.model.parameters import (
    CollectionName,
    Cursor,
    Fingerprint,
    LowestTrust,
    Name,
    PageLimit,
    QueryText,
    Tokenizer,
    Wait,
)
from conspectus.model.records import Document, NewDocument, Receipt, Source, Written
from conspectus.model.tasks import (
    STATUSES,
    Attachment,
    StoredAttachment,
    StoredTask,
    Task,
    TaskChanges,
    TaskContext,
    TaskPage,
    TaskResult,
    TaskWritten,
)
from conspectus.model.validation import check_methods
from conspectus.text.hashing import content_hash, stable_id

MAX_BATCH_TASKS = 500
BATCH_CHARACTERS = 3_000_000
DOCUMENTS_PER_PAGE = 1_000
MAX_READINGS = 20
"""Number of attempts to read a document and its text in the same state."""

OfStatus = Annotated[str | None, "Only tasks with this status."]
OfPriority = Annotated[str | None, "Only tasks with this priority."]


class TaskService:
    """The tasks of one source. Reading creates nothing; the first write creates collection and source."""

    def __init__(
        self,
        engine: TaskEngine,
        *,
        collection: str = "tasks",
        source: str = "tasks",
        tokenizer: str = "o200k_base",
    ) -> None:
        self._engine = engine
        self._source = TaskSource(engine, collection=collection, source=source)
        self._tokenizer = tokenizer

    def using(
        self,
        *,
        collection: CollectionName = "tasks",
        source: str = "tasks",
        tokenizer: Tokenizer = "o200k_base",
    ) -> "TaskService":
        """Return the tasks of another source, or with another tokenizer."""
        return TaskService(self._engine, collection=collection, source=source, tokenizer=tokenizer)

    async def put(self, task: Task, *, wait: Wait = True) -> TaskWritten:
        """Create a task, or replace its fields; its attachments stay.

        With `wait`, it can be found when this returns. Raises InvalidInput; ProviderError if it is written
        but could not be embedded.
        """
        return (await self.put_many([task], wait=wait))[0]

    async def put_many(self, tasks: Iterable[Task], *, wait: Wait = True) -> list[TaskWritten]:
        """Create or replace many tasks, in batches of at most 500, one transaction each."""
        written: list[TaskWritten] = []
        source: Source | None = None
        for batch in _batches(tasks):
            source = source or await self._source.get_or_create()
            written += await self._put_batch(source, batch)
        if source is not None and wait:
            await self._engine.documents.wait_until_embedded(collection=source.collection)
        return written

    async def get(self, task_id: str) -> StoredTask:
        """Return a task. Raises NotFound."""
        _, document_id = await self._source.locate("task", task_id)
        return to_task(*await self._source.read(document_id, "task", task_id))

    async def list(
        self,
        *,
        status: OfStatus = None,
        priority: OfPriority = None,
        tag: Annotated[Name, "Only tasks with this tag.", Example("security")] | None = None,
        after: Cursor | None = None,
        limit: PageLimit = 100,
    ) -> TaskPage:
        """List a page of tasks in the order in which they were created; `after` is a cursor."""
        where = _filter_by_state(status, priority)
        source = await self._source.find()
        if source is None:
            return TaskPage((), None)
        tagged = () if tag is None else (Eq(("tags",), tag),)
        condition = And((Eq("source", source.id), Not(Exists("parent")), where, *tagged))
        page = await self._engine.documents.list(
            collection=source.collection, filter=condition, after=after, limit=limit
        )
        return TaskPage(
            tuple(to_task(*row) for row in await self._source.with_texts(page.documents)), page.next
        )

    async def update(
        self,
        /,
        task_id: str,
        *,
        if_match: Fingerprint | None = None,
        wait: Wait = True,
        **changes: Unpack[TaskChanges],
    ) -> TaskWritten:
        """Change the fields of a task that are named.

        With `if_match`, the fingerprint that you read, raises PreconditionFailed if it was changed since.
        Raises NotFound or InvalidInput.
        """

        def change(stored: StoredTask) -> Task:
            if if_match not in {None, stored.fingerprint}:
                raise PreconditionFailed("task", task_id)
            return apply_changes(stored, changes)

        return await self._change(task_id, change, wait=wait)

    async def delete(self, task_id: str) -> Receipt:
        """Delete a task with its attachments; return how many were deleted. An unknown id counts 0."""
        return await self._source.delete(task_key(task_id))

    async def attach(self, task_id: str, attachment: Attachment, *, wait: Wait = True) -> TaskWritten:
        """Add an attachment to a task, or replace the one of that id. Raises NotFound or InvalidInput."""
        new = check_attachment(attachment)
        return await self._change(task_id, lambda stored: stored, wait=wait, attachment=new)

    async def detach(self, task_id: str, attachment_id: str) -> Receipt:
        """Delete an attachment of a task; an unknown id counts 0. Raises NotFound."""
        await self.get(task_id)
        receipt = await self._source.delete(attachment_key(task_id, attachment_id))
        with suppress(NotFound):
            await self.update(task_id, wait=False)
        return receipt

    async def attachment(self, task_id: str, attachment_id: str) -> StoredAttachment:
        """Return an attachment of a task. Raises NotFound."""
        key = attachment_key(task_id, attachment_id)
        _, document_id = await self._source.locate("attachment", attachment_id, key)
        return to_attachment(*await self._source.read(document_id, "attachment", attachment_id))

    async def attachments(self, task_id: str) -> Sequence[StoredAttachment]:
        """List the attachments of a task by id. Raises NotFound."""
        source, document_id = await self._source.locate("task", task_id)
        await self._source.read(document_id, "task", task_id)
        attachments = [
            to_attachment(*row)
            for row in await self._source.with_texts(await self._source.children(source, (document_id,)))
        ]
        return sorted(attachments, key=lambda attachment: attachment.id)

    async def search(
        self,
        query: QueryText,
        limit: Annotated[int, Range(1, 100), "Maximum number of results."] = 5,
        *,
        status: OfStatus = None,
        priority: OfPriority = None,
        min_similarity: Annotated[float, Range(0, 1), "Lowest cosine similarity of a result."] = 0.0,
        min_trust: LowestTrust | None = None,
    ) -> Sequence[TaskResult]:
        """Search tasks and attachments by vector, most similar first.

        The status and the priority of an attachment are those of its task. Raises InvalidInput for values out
        of range and for a collection without vectors, ProviderError if the query cannot be embedded.
        """
        where = _filter_by_state(status, priority)
        if not query.strip():
            raise InvalidInput("query", "must have a visible character")
        source = await self._source.find()
        if source is None:
            return []
        filter = with_min_trust(And((Eq("source", source.id), where)), min_trust)
        return await find_nearest(self._engine, TaskQuery(query, source, filter, limit, min_similarity))

    async def build_context(
        self,
        query: QueryText,
        limit: int = 3,
        *,
        include_metadata: bool = True,
        max_tokens: int | None = 1_500,
        min_similarity: float = 0.0,
        min_trust: LowestTrust | None = None,
    ) -> TaskContext:
        """Render the most similar tasks as numbered lines for a prompt, within `max_tokens`.

        Untrusted tasks are marked; `min_trust` is the lowest level of a task.
        """
        hits = await self.search(query, limit, min_similarity=min_similarity, min_trust=min_trust)
        count = self._engine.tokenizer(self._tokenizer)
        if not hits:
            fits = max_tokens is None or count(NO_TASKS) <= max_tokens
            text = NO_TASKS if fits else ""
            return TaskContext(text, count(text) if text else 0, "no_match", ())
        lines = [_line(number, hit) for number, hit in enumerate(hits, 1)]
        text, rendered_lines = render_tasks(lines, count, max_tokens, metadata=include_metadata)
        included = tuple(hits[line.number - 1] for line in rendered_lines)
        return TaskContext(text, count(text) if text else 0, "found", included, len(hits) - len(included))

    async def _put_batch(self, source: Source, batch: Sequence[Task]) -> Sequence[TaskWritten]:
        """Write tasks in one transaction, reading them again after a concurrent write.

        Tasks that are too large for that, with their attachments, are written in two halves.
        """
        tasks = {document_id_of(source, task_key(task.id)): task for task in batch}
        while True:
            stored = {
                document.id: document
                for document in await self._source.all(source, In("document", tuple(tasks)))
            }
            children = await self._source.children(source, tuple(stored))
            documents: list[NewDocument] = []
            try:
                for document_id, task in tasks.items():
                    attachments = [child for child in children if child.parent == document_id]
                    documents += await self._source.documents(
                        task, stored.get(DocumentId(document_id)), attachments
                    )
                if len(batch) > 1 and _is_too_much(documents):
                    break
                outcomes = await self._source.add(documents)
            except PreconditionFailed:
                continue
            # A task that was neither read nor added is new from another writer. Quarantined ones are unread.
            is_expected = (
                id in stored or outcomes[id].outcome == "added" or outcomes[id].quarantined is not None
                for id in tasks
            )
            if all(is_expected):
                return [_report_written(task.id, id, outcomes[id]) for id, task in tasks.items()]
        half = len(batch) // 2
        return [
            *await self._put_batch(source, batch[:half]),
            *await self._put_batch(source, batch[half:]),
        ]

    async def _change(
        self,
        task_id: str,
        change: Callable[[StoredTask], Task],
        *,
        wait: bool,
        attachment: Attachment | None = None,
    ) -> TaskWritten:
        """Write a task, optionally with an attachment, retrying after concurrent writes."""
        source, document_id = await self._source.locate("task", task_id)
        key = None if attachment is None else attachment_key(task_id, attachment.id)
        while True:
            document, text = await self._source.read(document_id, "task", task_id)
            task = change(to_task(document, text))
            children = await self._source.children(source, (document_id,))
            others = [child for child in children if child.key != key]
            with suppress(PreconditionFailed):
                outcomes = await self._source.add(
                    await self._source.documents(task, document, others, attachment)
                )
                break
        if wait:
            await self._engine.documents.wait_until_embedded(collection=source.collection)
        if key is None or attachment is None:
            return _report_written(task_id, document_id, outcomes[document_id])
        attachment_document_id = document_id_of(source, key)
        return _report_written(attachment.id, attachment_document_id, outcomes[attachment_document_id])


def _report_written(name: str, document: str, written: Written) -> TaskWritten:
    return TaskWritten(name, written.outcome, document, written.quarantined)


def _batches(tasks: Iterable[Task]) -> Iterator[Sequence[Task]]:
    """Return valid tasks in batches without duplicate ids. Raises InvalidInput."""
    batch: dict[str, Task] = {}
    size = 0
    for task in map(check_task, tasks):
        if task.id in batch or len(batch) == MAX_BATCH_TASKS or (batch and size > BATCH_CHARACTERS):
            yield list(batch.values())
            batch, size = {}, 0
        batch[task.id] = task
        size += len(task.description)
    if batch:
        yield list(batch.values())


def _is_too_much(documents: Sequence[NewDocument]) -> bool:
    """Return whether the engine would write them in several transactions."""
    return (
        len(documents) > MAX_BATCH_TASKS
        or sum(len(document.text) for document in documents) > BATCH_CHARACTERS
    )


def _filter_by_state(status: str | None, priority: str | None) -> Filter:
    """Return the filter of tasks and attachments in that state. Raises InvalidInput."""
    state = parse_status(status)
    urgency = parse_priority(priority)
    return And(
        (
            Eq("kind", "task"),
            In(("status",), STATUSES if state is None else (state,)),
            *(() if urgency is None else (Eq(("priority",), urgency),)),
        )
    )


def _line(number: int, hit: TaskResult) -> TaskLine:
    return TaskLine(
        number=number,
        task=hit.task_id,
        status=hit.status,
        priority=hit.priority,
        snippet=hit.snippet,
        similarity=hit.similarity,
        document=hit.reference,
        attachment=hit.attachment_id,
        trust=hit.trust,
    )


# TaskService is no Service, which would check the arguments of its methods: it also runs on remote engines.
check_methods(TaskService)


class TaskSource:
    """Reads and writes the documents of tasks and attachments in one source."""

    def __init__(self, engine: TaskEngine, *, collection: str, source: str) -> None:
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
        """Return a task's document, with documents to be written in the same transaction.

        The number of attachments reveals concurrent additions and deletions.
        """
        number = len(children) + (attachment is not None)
        documents = [task_document(task, attachments=number, if_match=stored.fingerprint if stored else None)]
        for child in children:
            if not is_stale(child, task):
                continue
            try:
                documents.append(
                    with_task_state(child, await self._engine.documents.get_text(child.id), task)
                )
            except NotFound:
                raise PreconditionFailed("attachment", child.key) from None
        if attachment is not None and stored is not None:
            documents.append(attachment_document(attachment, task, parent=stored.id))
        return documents

    async def add(self, documents: Sequence[NewDocument]) -> Mapping[str, Written]:
        """Write documents, and return the outcome of each by id. Raises PreconditionFailed."""
        written = await self._engine.documents.add(
            documents, source=self._source, collection=self._collection
        )
        return {document.id: document for document in written}

    async def delete(self, key: str) -> Receipt:
        """Delete the document of that key with its children. An unknown key is ignored."""
        source = await self.find()
        return (
            Receipt() if source is None else await self._engine.documents.delete(document_id_of(source, key))
        )

    async def read(self, document_id: str, kind: str, name: str) -> tuple[Document, str]:
        """Return a document of this service and its text, consistently. Raises NotFound."""
        try:
            document, text = await self._read_consistently(await self._engine.documents.get(document_id))
        except NotFound:
            raise NotFound(kind, name) from None
        if not is_task(document):
            raise NotFound(kind, name)
        return document, text

    async def _read_consistently(self, document: Document) -> tuple[Document, str]:
        for _ in range(MAX_READINGS):
            text = await self._engine.documents.get_text(document.id)
            if content_hash(text) == document.content_hash or not document.chunks:
                return document, text
            document = await self._engine.documents.get(document.id)
        raise StorageBusy(f"document {document.id} changed while it was read; try again")

    async def with_texts(self, documents: Iterable[Document]) -> Sequence[tuple[Document, str]]:
        """Return documents of this service with their texts, without those deleted meanwhile."""
        tasks = {document.id: document for document in documents if is_task(document)}
        ids, texts = list(tasks), dict[str, str]()
        for start in range(0, len(ids), DOCUMENTS_PER_PAGE):
            texts |= await self._engine.documents.get_texts(ids[start : start + DOCUMENTS_PER_PAGE])
        rows = []
        for id, document in tasks.items():
            if id in texts and content_hash(texts[id]) == document.content_hash:
                rows.append((document, texts[id]))
            elif id in texts:
                with suppress(NotFound):
                    rows.append(await self._read_consistently(document))
        return [(document, text) for document, text in rows if is_task(document)]

    async def children(self, source: Source, parents: Sequence[str]) -> Sequence[Document]:
        """Return the attachments of tasks."""
        documents = await self.all(source, In("parent", tuple(parents))) if parents else []
        return [document for document in documents if is_task(document)]

    async def all(self, source: Source, where: Filter) -> Sequence[Document]:
        """Return every document of the source that matches."""
        within = And((Eq("source", source.id), where))
        listing = pages(
            self._engine.documents.list, collection=source.collection, filter=within, limit=DOCUMENTS_PER_PAGE
        )
        return [document async for page in listing for document in page.documents]

    async def locate(self, kind: str, name: str, key: str | None = None) -> tuple[Source, str]:
        """Return the source and the id of a task's document, stored or not. Raises NotFound."""
        source = await self.find()
        if source is None:
            raise NotFound(kind, name)
        return source, document_id_of(source, task_key(name) if key is None else key)

    async def find(self) -> Source | None:
        """Return the source, if it is readable."""
        try:
            return await self._engine.collections.get_source(self._source, collection=self._collection)
        except NotFound:
            return None

    async def get_or_create(self) -> Source:
        """Return the source, created if it is new."""
        return await self._engine.collections.get_or_create_source(
            self._source, collection=self._collection, kind="tasks"
        )


def document_id_of(source: Source, key: str) -> str:
    """Return the id of the document of that key."""
    return stable_id("document", source.id, key)
