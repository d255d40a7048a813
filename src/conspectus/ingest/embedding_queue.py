"""Embedding for many callers: shared batches of one hosted model, and vectors that callers hand in."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Final, Literal, Protocol

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Vectors
from conspectus.ports.jobs import CURRENT_USER, on_behalf_of
from conspectus.text.vectors import MAX_DIMENSIONS, check_rows

CONTROL_TEXT: Final = "a"
"""A text that every service embeds: if it is refused, the service is to blame and not a text."""
InputType = Literal["document", "query"]


class BatchEmbedder(Protocol):
    """The embedder that the queue sends batches to; it calls once and leaves retries to the queue."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""

    @property
    def max_texts(self) -> int:
        """How many texts one request may carry."""

    async def embed_batch(self, texts: Sequence[str], kind: InputType) -> Vectors:
        """Unit rows of shape (len(texts), dimensions), from one request."""

    async def close(self) -> None:
        """Release what it holds."""


@dataclass(frozen=True, slots=True)
class BatchSharing:
    """How batches are shared:

    at most `texts` in one, sent after `wait` seconds even if it is not full. At most `at_once` batches of one
    input type are sent concurrently; later texts wait and share the next one.
    """

    texts: int = 96
    wait: float = 2.0
    at_once: int = 4


@dataclass(slots=True, eq=False)
class _Request:
    """One call: its rows so far, and the future that its caller awaits."""

    answer: asyncio.Future[Vectors]
    rows: list[Vectors]
    left: int

    def fill(self, position: int, row: Vectors) -> None:
        self.rows[position] = row
        self.left -= 1
        if not self.left and not self.answer.done():
            self.answer.set_result(np.stack(self.rows))

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    request: _Request
    position: int
    user: str | None


class EmbedQueue:
    """An embedder that gathers the texts of many callers into full batches of one model.

    A queue has one model and one size of vector, and documents and queries never share a batch, so all texts
    of a batch agree in all three. Documents wait until a batch is full or the first of them has waited long
    enough. Queries do not wait, as a person does: they are sent at once, together with queries that are
    already in the queue.

    Each caller gets the rows of its own texts in its own order, or the error of its own texts: a batch that
    is refused is halved until the refused text stands alone. So is a batch with an invalid answer, if the
    service answers a control text properly. Calls to a busy provider are retried with backoff. Every other
    failure goes to all whose texts were in that batch, at once.
    """

    def __init__(
        self,
        inner: BatchEmbedder,
        *,
        sharing: BatchSharing | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self._inner = inner
        limits, retry_policy = sharing or BatchSharing(), retry_policy or RetryPolicy()
        limits = replace(limits, texts=min(limits.texts, inner.max_texts))
        self._documents = _Lane(inner, "document", limits, retry_policy)
        self._queries = _Lane(inner, "query", limits, retry_policy)

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the model behind the queue."""
        return self._inner.space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions). Raises ProviderError, ProviderUnavailable."""
        if not texts:
            return np.empty((0, self.space.dimensions), dtype=np.float32)
        return await self._documents.embed(texts)

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector of shape (dimensions,). Raises ProviderError, ProviderUnavailable."""
        row: Vectors = (await self._queries.embed([text]))[0]
        return row

    async def close(self) -> None:
        """End what is under way; callers that still wait get ProviderUnavailable."""
        await self._documents.close()
        await self._queries.close()
        await self._inner.close()


@dataclass(slots=True, eq=False)
class _Lane:
    """The texts of one input type that wait, and the batches of them that are under way."""

    inner: BatchEmbedder
    kind: InputType
    sharing: BatchSharing
    retry_policy: RetryPolicy
    waiting: deque[_Text] = field(default_factory=deque)
    running: dict[asyncio.Task[None], Sequence[_Text]] = field(default_factory=dict)
    timer: asyncio.Task[None] | None = None
    due: bool = False
    closed: bool = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.closed:
            raise self._make_closing_error()
        loop = asyncio.get_running_loop()
        request = _Request(loop.create_future(), [np.empty(0, dtype=np.float32)] * len(texts), len(texts))
        self.waiting.extend(
            _Text(text, request, position, CURRENT_USER.get()) for position, text in enumerate(texts)
        )
        if self.kind == "query":
            self.due = True
        elif self.timer is None:
            self.timer = asyncio.create_task(self._expire())
        loop.call_soon(self._send)
        return await request.answer

    async def close(self) -> None:
        self.closed = True
        tasks = [*self.running, *([self.timer] if self.timer else [])]
        for each in [*self.waiting, *(text for batch in self.running.values() for text in batch)]:
            each.request.fail(self._make_closing_error())
        self.waiting.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _expire(self) -> None:
        await self.retry_policy.sleep(self.sharing.wait)
        self.timer = None
        self.due = True
        self._send()

    def _send(self) -> None:
        """Start every batch that can leave now."""
        while len(self.running) < self.sharing.at_once and (batch := self._next()):
            task = asyncio.create_task(self._embed(batch))
            self.running[task] = batch
            task.add_done_callback(self._end_batch)

    def _next(self) -> Sequence[_Text]:
        """A full batch, or the queued texts if the wait is over."""
        size = self.sharing.texts
        if len(self.waiting) < size and not self.due:
            return ()
        batch = [self.waiting.popleft() for _ in range(min(size, len(self.waiting)))]
        if not self.waiting:
            self.due = False
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None
        return batch

    def _end_batch(self, task: asyncio.Task[None]) -> None:
        batch = self.running.pop(task)
        error = self._make_closing_error() if task.cancelled() else task.exception()
        if error is not None:
            for text in batch:
                text.request.fail(error)
        if not self.closed:
            self._send()

    async def _embed(self, batch: Sequence[_Text]) -> None:
        """Give each text its row, or its request the error; a text whose caller has gone is not sent."""
        batch = [text for text in batch if not text.request.answer.done()]
        if not batch:
            return
        try:
            rows = await self.retry_policy.retry(lambda: self._ask(batch))
        except ProviderError as error:
            if len(batch) > 1 and await self._fails_for_some(error):
                middle = len(batch) // 2
                await self._embed(batch[:middle])
                await self._embed(batch[middle:])
            else:
                for text in batch:
                    text.request.fail(error)
            return
        for text, row in zip(batch, rows, strict=True):
            text.request.fill(text.position, row)

    async def _fails_for_some(self, error: ProviderError) -> bool:
        """Return whether a batch may have failed because of a part of its texts."""
        if error.verdict != "answer":
            return error.verdict == "text"
        try:
            await self.inner.embed_batch([CONTROL_TEXT], self.kind)
        except ProviderError:
            return False
        return True

    async def _ask(self, batch: Sequence[_Text]) -> Vectors:
        users = {text.user for text in batch}
        with on_behalf_of(users.pop() if len(users) == 1 else None):
            rows = await self.inner.embed_batch([text.text for text in batch], self.kind)
        return check_rows(rows, self.inner.space, len(batch))

    def _make_closing_error(self) -> ProviderUnavailable:
        return ProviderUnavailable(self.inner.space.model, "is being closed; the texts were not embedded")


VECTORS: Final = "vectors:"
"""The setting `vectors:768` names the space of vectors of 768 numbers that callers have already."""


class GivenVectors:
    """Takes the place of an embedder of such a space; it embeds nothing."""

    def __init__(self, setting: str) -> None:
        size = setting.removeprefix(VECTORS)
        digits = size.isascii() and size.isdecimal() and len(size) <= len(str(MAX_DIMENSIONS))
        if not (digits and 1 <= int(size) <= MAX_DIMENSIONS):
            raise InvalidInput("embedder", f"{setting!r} needs a size from 1 to {MAX_DIMENSIONS}")
        self.space = EmbeddingSpace(VECTORS.removesuffix(":"), int(size))

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Raise InvalidInput: callers have to give vectors."""
        raise self._refusal()

    async def embed_query(self, text: str) -> Vectors:
        """Raise InvalidInput: callers have to give vectors."""
        raise self._refusal()

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _refusal(self) -> InvalidInput:
        return InvalidInput("vector", "must be given: the collection has no embedder of its own")
