"""Check new captions and events against alerts, and call their webhooks in the leader process."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from typing import Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, FetchFailed, InvalidInput, ProviderError, ProviderUnavailable
from conspectus.model.alerts import Alert
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, Collection, Document
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Clock, Reader, Records, Vectors
from conspectus.ports.jobs import Lock, Turn
from conspectus.ports.streams import AlertMatch, Alerts, Behind, Checked, Delivery, Match, Poster
from conspectus.text.analyzer import Analyzer

ANCHOR: Final = "anchor"
"""A single term that is not a stop word. A text of only stop words would otherwise keep its terms."""


class Language:
    """Analyzes texts in one language."""

    def __init__(self, language: str | None) -> None:
        self._telling = Analyzer(language)
        self._all = Analyzer(language, stop_words=False)

    def telling(self, text: str) -> list[str]:
        """Return the terms of a text without stop words, in order."""
        return self._telling.terms(f"{text} {ANCHOR}")[:-1]

    def all(self, text: str) -> list[str]:
        """Return all terms of a text, including stop words."""
        return self._all.terms(text)


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """A compiled query of an alert.

    A caption matches if it has all `words`. If the query has only stop words, it matches `phrase` instead.
    `vector` is the embedding of the query, None if similarity is not used.
    """

    filter: Filter
    asks: bool
    words: frozenset[str]
    phrase: tuple[str, ...]
    min_similarity: float | None = None
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True)
class AnalyzedCaption:
    """A caption with its terms and the vectors that are available so far.

    `chunk` is the id of one of its chunks. Ids increase with every write.
    """

    document: Document
    chunk: int
    words: Set[str]
    sequence: Sequence[str]
    vectors: Sequence[bytes] = ()


def question(
    text: str, filter: Filter, language: Language, *, min_similarity: float | None, vector: Vectors | None
) -> AlertQuery:
    """Compile the query of an alert."""
    words = frozenset(language.telling(text))
    phrase = () if words else tuple(language.all(text))
    return AlertQuery(filter, bool(text.strip()), words, phrase, min_similarity, vector)


def analyzed(
    document: Document, text: str, language: Language, *, chunk: int = 0, vectors: Sequence[bytes] = ()
) -> AnalyzedCaption:
    """Analyze a caption once, to match it with many queries."""
    return AnalyzedCaption(document, chunk, frozenset(language.telling(text)), language.all(text), vectors)


def reason(query: AlertQuery, caption: AnalyzedCaption) -> str | None:
    """Return why a caption matches; None if it does not match."""
    if not matches(query.filter, document_row(caption.document)):
        return None
    if not query.asks:
        return "its fields"
    if query.words and query.words <= set(caption.words):
        return f"words: {', '.join(sorted(query.words))}"
    if query.phrase and _holds(caption.sequence, query.phrase):
        return f"phrase: {' '.join(query.phrase)}"
    similarity = _similarity(query, caption)
    if similarity is None or query.min_similarity is None or similarity < query.min_similarity:
        return None
    return f"similarity: {similarity:.2f}"


def _similarity(query: AlertQuery, caption: AnalyzedCaption) -> float | None:
    """Return the highest cosine similarity between the query and the chunks of the caption."""
    if query.vector is None or not caption.vectors:
        return None
    rows = np.stack([np.frombuffer(vector, dtype="<f2").astype(np.float32) for vector in caption.vectors])
    return float((rows @ query.vector).max())


def _holds(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether the terms contain the phrase without gaps."""
    wide = len(phrase)
    return any(tuple(terms[at : at + wide]) == tuple(phrase) for at in range(len(terms) - wide + 1))


CanRead = Callable[[Document], bool]
ReadCheck = Callable[[Alert], Awaitable[CanRead | None]]
"""Returns the check for documents that the owner of an alert may read now; None if there are none."""
Meaning = Callable[[Collection, str], Awaitable[Vectors | None]]
"""Embeds a query with the model of a collection; None without a model. Raises ProviderError."""

CHANGES: Final = 200
CHUNKS: Final = 4_096
"""Maximum numbers of changes per step and of chunks per read."""
PAUSE: Final = 5.0
"""Seconds before an alert is checked again after its query could not be embedded."""
REMEMBERED: Final = 10_000


class Checker:
    """Checks the alerts of a store in steps through its history."""

    def __init__(
        self, records: Records, alerts: Alerts, *, eyes: ReadCheck, meaning: Meaning, clock: Clock
    ) -> None:
        self._records = records
        self._alerts = alerts
        self._eyes = eyes
        self._meaning = meaning
        self._clock = clock
        self._languages: dict[str | None, Language] = {}
        self._vectors: dict[tuple[str, str], Vectors | None] = {}
        self._later: dict[str, float] = {}

    async def round(self) -> bool:
        """Run one step for every alert that is behind. Returns whether there was any."""
        now = time.monotonic()
        self._later = {alert: until for alert, until in self._later.items() if until > now}
        behind = [
            alert_state
            for alert_state in await self._alerts.behind()
            if alert_state.alert.id not in self._later
        ]
        if not behind:
            return False
        collections = {str(collection.id): collection for collection in await self._records.collections()}
        for (collection, checked), alerts in groupby(
            behind, lambda alert_state: (alert_state.alert.collection, alert_state.alert.checked)
        ):
            if collection in collections:
                await self._check(collections[collection], checked, list(alerts))
        return True

    async def _check(self, collection: Collection, checked: int, alerts: Sequence[Behind]) -> None:
        reader = self._records.reader(collection.id, collection.space)
        changes = await reader.changes_since(checked, limit=CHANGES)
        if not changes:
            return
        captions = await self._captions(reader, changes, self._language(collection.language))
        until = changes[-1].sequence
        views = (
            {alert_state.alert.owner: await self._eyes(alert_state.alert) for alert_state in alerts}
            if captions
            else {}
        )
        results = [
            await self._result(
                alert_state, until, captions, collection=collection, shows=views.get(alert_state.alert.owner)
            )
            for alert_state in alerts
        ]
        await self._alerts.record(results, now=self._clock())

    async def _result(
        self,
        behind: Behind,
        until: int,
        captions: Sequence[AnalyzedCaption],
        *,
        collection: Collection,
        shows: CanRead | None,
    ) -> Checked:
        alert = behind.alert
        fresh = [caption for caption in captions if caption.chunk > behind.since]
        mine = [caption for caption in fresh if not alert.streams or caption.document.source in alert.streams]
        if shows is None or not mine:
            return Checked(alert, until)
        vector, is_final = await self._vector(alert, mine, collection)
        query = question(
            alert.query,
            alert.filter,
            self._language(collection.language),
            min_similarity=alert.min_similarity,
            vector=vector,
        )
        matches = await asyncio.to_thread(_matches, query, mine, shows)
        return Checked(alert, until if is_final else alert.checked, matches)

    async def _vector(
        self, alert: Alert, captions: Sequence[AnalyzedCaption], collection: Collection
    ) -> tuple[Vectors | None, bool]:
        """Return the query vector, if it is needed, and whether the result is final."""
        comparable = any(caption.vectors for caption in captions)
        if (
            collection.space is None
            or alert.min_similarity is None
            or not alert.query.strip()
            or not comparable
        ):
            return None, True
        key = (collection.space.name, alert.query)
        if key not in self._vectors:
            if len(self._vectors) >= REMEMBERED:
                self._vectors.clear()
            try:
                self._vectors[key] = await self._meaning(collection, alert.query)
            except ProviderUnavailable:
                self._later[alert.id] = time.monotonic() + PAUSE
                return None, False
            except ProviderError:
                self._vectors[key] = None
        return self._vectors[key], True

    async def _captions(
        self, reader: Reader, changes: Sequence[Change], language: Language
    ) -> Sequence[AnalyzedCaption]:
        """Read the captions that were written or embedded, in their current state."""
        pieces: dict[str, list[IndexedChunk]] = {}
        for first, last in _put(changes):
            for chunk in await reader.chunks(ChunkId(first), ChunkId(last)):
                if chunk.document.kind == "caption":
                    pieces.setdefault(chunk.document.id, []).append(chunk)
        longer = [chunks[0].document.id for chunks in pieces.values() if chunks[0].document.chunks > 1]
        texts = await self._records.texts(longer) if longer else {}
        full_texts = {str(name): text for name, text in texts.items()}
        return await asyncio.to_thread(_analyzed, pieces, full_texts, language)

    def _language(self, name: str | None) -> Language:
        if name not in self._languages:
            self._languages[name] = Language(name)
        return self._languages[name]


def _put(changes: Sequence[Change]) -> Iterator[tuple[int, int]]:
    """Return the ids of written chunks as disjoint ranges of limited size."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(
        (int(change.first), int(change.last)) for change in changes if change.operation == "put"
    ):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        else:
            ranges.append((first, last))
    for begin, end in ranges:
        for start in range(begin, end + 1, CHUNKS):
            yield start, min(start + CHUNKS - 1, end)


def _analyzed(
    pieces: Mapping[str, Sequence[IndexedChunk]], texts: Mapping[str, str], language: Language
) -> list[AnalyzedCaption]:
    captions = []
    for name, chunks in pieces.items():
        first = chunks[0]
        text = texts.get(name, first.chunk.text)
        vectors = tuple(chunk.vector for chunk in chunks if chunk.vector is not None)
        captions.append(analyzed(first.document, text, language, chunk=first.chunk.id, vectors=vectors))
    return captions


def _matches(query: AlertQuery, captions: Sequence[AnalyzedCaption], shows: CanRead) -> tuple[Match, ...]:
    matches = []
    for caption in captions:
        why = reason(query, caption)
        if why is not None and shows(caption.document):
            document = caption.document
            matches.append(Match(document.id, document.source, document.occurred, why))
    return tuple(matches)


HIDDEN: Final = "its caption can no longer be seen by whom the alert is for"
Body = Callable[[AlertMatch], Awaitable[bytes | None]]
"""Returns the webhook body of an event; None if the owner of the alert may no longer read it."""


class Deliverer:
    """Delivers due events. Events of one alert are sent in sequence, different alerts concurrently."""

    def __init__(
        self, alerts: Alerts, poster: Poster, *, body: Body, patience: RetryPolicy, clock: Clock
    ) -> None:
        self._alerts = alerts
        self._poster = poster
        self._body = body
        self._patience = patience
        self._clock = clock
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    async def round(self, hold: Lock) -> None:
        """Start a delivery for every alert with due events, unless one is running."""
        self._sending = {alert: task for alert, task in self._sending.items() if not task.done()}
        for alert in await self._alerts.waiting(now=self._clock()):
            if alert not in self._sending:
                self._sending[alert] = asyncio.create_task(self._send(alert, hold))

    async def stop(self, *, grace: float) -> None:
        """Wait up to `grace` seconds for running deliveries, then cancel them; they are repeated later."""
        self._stopping = True
        sending = list(self._sending.values())
        if sending:
            await asyncio.wait(sending, timeout=grace)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        self._sending.clear()
        self._stopping = False

    async def _send(self, alert: str, hold: Lock) -> None:
        try:
            while not self._stopping:
                event = await self._alerts.due(alert, now=self._clock())
                if event is None:
                    return
                await self._alerts.set_delivery(event.number, await self._sent(event, hold))
        except ConspectusError as fault:
            logger.warning("webhook_failed code=%(code)s", {"code": fault.code})

    async def _sent(self, event: AlertMatch, hold: Lock) -> Delivery:
        """Send an event and return the outcome. Raises LockLost if another process has taken over."""
        body = await self._body(event)
        await hold.confirm()
        if body is None:
            return Delivery("failed", event.attempts, HIDDEN)
        attempts = event.attempts + 1
        try:
            await self._poster.post(event.alert.webhook or "", body, id=event.id)
        except (FetchFailed, InvalidInput) as fault:
            return self._again(fault, attempts)
        return Delivery("delivered", attempts)

    def _again(self, fault: ConspectusError, attempts: int) -> Delivery:
        passing = isinstance(fault, FetchFailed) and fault.passing
        if not passing or attempts >= self._patience.attempts:
            return Delivery("failed", attempts, str(fault))
        wait = timedelta(seconds=self._patience.wait(attempts - 1, None))
        return Delivery("pending", attempts, str(fault), self._clock() + wait)


logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
"""Seconds between two attempts to acquire the lock."""


class Leadership:
    """A background task that runs in the process that holds a lock. Subclasses implement `_lead`.

    Call `start` to begin and `close` to end it. If the task fails, the log names it `what`, and it is
    repeated after `again` seconds.
    """

    def __init__(self, turn: Turn, what: str, *, again: float = TURN_SECONDS) -> None:
        self._turn = turn
        self._what = what
        self._again = again
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Start the task, which waits for the lock. Raises the error that ended it, if any."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def close(self) -> None:
        """Stop after the current step."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _lead(self) -> None:
        """Run until the task is closed, if this process gets the lock."""
        raise NotImplementedError

    async def _serve(self) -> None:
        while not self._closing.is_set():
            pause = TURN_SECONDS
            try:
                await self._lead()
            except (ConspectusError, OSError) as fault:
                reason = fault.code if isinstance(fault, ConspectusError) else fault.strerror
                logger.warning(
                    "leader_task_failed task=%(task)s reason=%(reason)s",
                    {"task": self._what, "reason": reason},
                )
                pause = self._again
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)


class AlertWorker(Leadership):
    """Checks alerts and delivers their events in one process per store: the process that holds the lock.

    It polls every `poll` seconds. When it stops, running deliveries have `grace` seconds to finish.
    """

    def __init__(
        self,
        checker: Checker,
        deliverer: Deliverer,
        *,
        turn: Turn,
        poll: float,
        grace: float,
    ) -> None:
        super().__init__(turn, "checking alerts")
        self._checker = checker
        self._deliverer = deliverer
        self._poll = poll
        self._grace = grace

    async def _lead(self) -> None:
        """Check and deliver until the worker is closed, if this process gets the lock."""
        async with self._turn() as mine:
            if not mine:
                return
            try:
                await self._go_on(mine)
            finally:
                await self._deliverer.stop(grace=self._grace)

    async def _go_on(self, hold: Lock) -> None:
        while not self._closing.is_set():
            more = await self._checker.round()
            await self._deliverer.round(hold)
            if not more:
                await self._pause(self._poll)
