"""Tasks with attachments, found by meaning, and shown to a language model.

It works with an engine in this process and with one on a server. A task is one document, under the
caller's own id; an attachment is a child of it, so that it goes when the task goes.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from conspectus.chat.task_lines import NO_TASKS, TaskLine, render_tasks
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Changed, InvalidInput, NotFound
from conspectus.facades.tasks.documents import (
    attachment_key,
    task_key,
    to_attachment,
    to_task,
)
from conspectus.facades.tasks.mapping import (
    STATUSES,
    Attachment,
    StoredAttachment,
    StoredTask,
    Task,
    TaskContext,
    TaskPage,
    TaskResult,
    TaskWritten,
    changed,
    checked,
    checked_attachment,
    named_priority,
    named_status,
)
from conspectus.facades.tasks.search import TaskQuery, nearest
from conspectus.facades.tasks.source import TaskSource, place_of
from conspectus.model.filter import And, Eq, Exists, Filter, In, Not
from conspectus.model.ids import DocumentId
from conspectus.model.records import NewDocument, Receipt, Source

BATCH = 500
BATCH_CHARACTERS = 3_000_000
MOST_RESULTS = 100


class Tasks:
    """The tasks of one source. Nothing is made by reading; the first write makes collection and source."""

    def __init__(
        self,
        engine: AnyEngine,
        *,
        collection: str = "tasks",
        source: str = "tasks",
        tokenizer: str = "o200k_base",
    ) -> None:
        self._engine = engine
        self._shelf = TaskSource(engine, collection=collection, source=source)
        self._tokenizer = tokenizer

    async def put(self, task: Task, *, wait: bool = True) -> TaskWritten:
        """Create the task, or replace what it says; its attachments stay.

        With `wait` it can be found when this returns. Raises InvalidInput; ProviderError where it is written,
        but could not be embedded.
        """
        return (await self.put_many([task], wait=wait))[0]

    async def put_many(self, tasks: Iterable[Task], *, wait: bool = True) -> list[TaskWritten]:
        """The same for many, in batches of at most 500 that are each written whole or not at all."""
        written: list[TaskWritten] = []
        source: Source | None = None
        for batch in _batches(tasks):
            source = source or await self._shelf.made()
            written += await self._put_batch(source, batch)
        if source is not None and wait:
            await self._engine.documents.settle(collection=source.collection)
        return written

    async def get(self, task_id: str) -> StoredTask:
        """A task. Raises NotFound."""
        _, place = await self._shelf.place("task", task_id)
        return to_task(*await self._shelf.read(place, "task", task_id))

    async def list(
        self,
        *,
        status: str | None = None,
        priority: str | None = None,
        tag: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> TaskPage:
        """A page of tasks, the first written first; `after` is the page before's `next`."""
        where = _where(status, priority)
        source = await self._shelf.found()
        if source is None:
            return TaskPage((), None)
        tagged = () if tag is None else (Eq(("tags",), tag),)
        chosen = And((Eq("source", source.id), Not(Exists("parent")), where, *tagged))
        page = await self._engine.documents.list(
            collection=source.collection, where=chosen, after=after, limit=limit
        )
        return TaskPage(tuple(to_task(*each) for each in await self._shelf.whole(page.documents)), page.next)

    async def update(
        self, task_id: str, *, expected: str | None = None, wait: bool = True, **changes: Any
    ) -> TaskWritten:
        """Change fields of a task: title, description, tags, status, priority, metadata.

        With `expected`, the fingerprint that was read, raises Changed if it is another one by now. Raises
        NotFound or InvalidInput.
        """

        def change(stored: StoredTask) -> Task:
            if expected not in {None, stored.fingerprint}:
                raise Changed("task", task_id)
            return changed(stored, changes)

        return await self._change(task_id, change, wait=wait)

    async def delete(self, task_id: str) -> Receipt:
        """Delete a task with its attachments, and say how much went; an unknown one counts as nothing."""
        return await self._shelf.delete(task_key(task_id))

    async def attach(self, task_id: str, attachment: Attachment, *, wait: bool = True) -> TaskWritten:
        """Give a task an attachment, or replace the one of that id. Raises NotFound or InvalidInput."""
        new = checked_attachment(attachment)
        return await self._change(task_id, lambda stored: stored, wait=wait, attachment=new)

    async def detach(self, task_id: str, attachment_id: str) -> Receipt:
        """Delete an attachment of a task; one that is unknown counts as nothing. Raises NotFound."""
        await self.get(task_id)
        receipt = await self._shelf.delete(attachment_key(task_id, attachment_id))
        with suppress(NotFound):
            await self.update(task_id, wait=False)
        return receipt

    async def attachment(self, task_id: str, attachment_id: str) -> StoredAttachment:
        """An attachment of a task. Raises NotFound."""
        key = attachment_key(task_id, attachment_id)
        _, place = await self._shelf.place("attachment", attachment_id, key)
        return to_attachment(*await self._shelf.read(place, "attachment", attachment_id))

    async def attachments(self, task_id: str) -> Sequence[StoredAttachment]:
        """The attachments of a task, by id. Raises NotFound."""
        source, place = await self._shelf.place("task", task_id)
        await self._shelf.read(place, "task", task_id)
        found = [
            to_attachment(*each)
            for each in await self._shelf.whole(await self._shelf.children(source, (place,)))
        ]
        return sorted(found, key=lambda each: each.id)

    async def search(
        self,
        q: str,
        n: int = 5,
        *,
        status: str | None = None,
        priority: str | None = None,
        min_similarity: float = 0.0,
    ) -> Sequence[TaskResult]:
        """The tasks and attachments nearest in meaning, nearest first; none where there is nothing.

        The status and the priority of an attachment are those of its task. Raises InvalidInput for values out
        of range and for a collection of words only, ProviderError where nothing can be compared.
        """
        where = _where(status, priority)
        if not q.strip():
            raise InvalidInput("q", "must have a visible character")
        if not 1 <= n <= MOST_RESULTS:
            raise InvalidInput("n", f"must be from 1 to {MOST_RESULTS}")
        if not (math.isfinite(min_similarity) and 0.0 <= min_similarity <= 1.0):
            raise InvalidInput("min_similarity", "must be from 0 to 1")
        source = await self._shelf.found()
        if source is None:
            return []
        within = And((Eq("source", source.id), where))
        return await nearest(self._engine, TaskQuery(q, source, within, n, min_similarity))

    async def build_context(
        self,
        query: str,
        n_results: int = 3,
        *,
        include_metadata: bool = True,
        max_tokens: int | None = 1_500,
        min_similarity: float = 0.0,
    ) -> TaskContext:
        """The nearest tasks as numbered lines for a prompt, in `max_tokens` at most (None: no limit)."""
        found = await self.search(query, n_results, min_similarity=min_similarity)
        count = self._engine.counter(self._tokenizer)
        if not found:
            fits = max_tokens is None or count(NO_TASKS) <= max_tokens
            text = NO_TASKS if fits else ""
            return TaskContext(text, count(text) if text else 0, "nothing_relevant", ())
        lines = [_line(number, each) for number, each in enumerate(found, 1)]
        text, inside = render_tasks(lines, count, max_tokens, metadata=include_metadata)
        shown = tuple(found[line.number - 1] for line in inside)
        return TaskContext(text, count(text) if text else 0, "found", shown, len(found) - len(shown))

    async def _put_batch(self, source: Source, batch: Sequence[Task]) -> Sequence[TaskWritten]:
        """Write tasks in one go; where another wrote meanwhile, they are read again.

        With attachments that have to be written along with them, they may be too much for one transaction.
        """
        tasks = {place_of(source, task_key(task.id)): task for task in batch}
        while True:
            known = {each.id: each for each in await self._shelf.all(source, In("document", tuple(tasks)))}
            children = await self._shelf.children(source, tuple(known))
            documents: list[NewDocument] = []
            try:
                for place, task in tasks.items():
                    below = [each for each in children if each.parent == place]
                    documents += await self._shelf.documents(task, known.get(DocumentId(place)), below)
                if len(batch) > 1 and _is_too_much(documents):
                    break
                outcomes = await self._shelf.add(documents)
            except Changed:
                continue
            if all(place in known or outcomes[place].outcome == "added" for place in tasks):
                return [TaskWritten(each.id, outcomes[at].outcome, at) for at, each in tasks.items()]
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
        """Write a task anew, with an attachment or without, as often as another is quicker."""
        source, place = await self._shelf.place("task", task_id)
        name = None if attachment is None else attachment_key(task_id, attachment.id)
        while True:
            document, text = await self._shelf.read(place, "task", task_id)
            task = change(to_task(document, text))
            below = [each for each in await self._shelf.children(source, (place,)) if each.key != name]
            with suppress(Changed):
                outcomes = await self._shelf.add(
                    await self._shelf.documents(task, document, below, attachment)
                )
                break
        if wait:
            await self._engine.documents.settle(collection=source.collection)
        at = place if name is None else place_of(source, name)
        return TaskWritten(task_id if attachment is None else attachment.id, outcomes[at].outcome, at)


def _batches(tasks: Iterable[Task]) -> Iterator[Sequence[Task]]:
    """Checked tasks in the order given; no batch has the same id twice. Raises InvalidInput."""
    batch: dict[str, Task] = {}
    size = 0
    for task in map(checked, tasks):
        if task.id in batch or len(batch) == BATCH or (batch and size > BATCH_CHARACTERS):
            yield list(batch.values())
            batch, size = {}, 0
        batch[task.id] = task
        size += len(task.description)
    if batch:
        yield list(batch.values())


def _is_too_much(documents: Sequence[NewDocument]) -> bool:
    """Whether the engine would take them in several transactions."""
    return len(documents) > BATCH or sum(len(each.text) for each in documents) > BATCH_CHARACTERS


def _where(status: str | None, priority: str | None) -> Filter:
    """Tasks and attachments in that state, and nothing that others put beside them. Raises InvalidInput."""
    state = named_status(status)
    urgency = named_priority(priority)
    return And(
        (
            Eq("kind", "task"),
            In(("status",), STATUSES if state is None else (state,)),
            *(() if urgency is None else (Eq(("priority",), urgency),)),
        )
    )


def _line(number: int, found: TaskResult) -> TaskLine:
    return TaskLine(
        number=number,
        task=found.task_id,
        status=found.status,
        priority=found.priority,
        snippet=found.snippet,
        similarity=found.similarity,
        document=found.reference,
        attachment=found.attachment_id,
    )
