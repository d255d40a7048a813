"""Check new captions and events against alerts, and call their webhooks in the leader process."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.alerts import Alert
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, Collection, Document
from conspectus.ports import Clock, Reader, Records, Vectors
from conspectus.ports.jobs import Lock, Turn
from conspectus.ports.streams import Alerts, Behind, Checked, Match
from conspectus.streams.alert_delivery import Deliverer
from conspectus.streams.alert_queries import (
    AlertQuery,
    AnalyzedCaption,
    EmbedQuery,
    Language,
    analyze_caption,
    question,
    reason,
)
from conspectus.streams.leadership import Leadership

CanRead = Callable[[Document], bool]
ReadCheck = Callable[[Alert], Awaitable[CanRead | None]]
"""Returns the check for documents that the owner of an alert may read now; None if there are none."""

CHANGES: Final = 200
CHUNKS: Final = 4_096
"""Maximum numbers of changes per step and of chunks per read."""
PAUSE: Final = 5.0
"""Seconds before an alert is checked again after its query could not be embedded."""
REMEMBERED: Final = 10_000


class Checker:
    """Checks the alerts of a store in steps through its history."""

    def __init__(
        self,
        records: Records,
        alerts: Alerts,
        *,
        read_check: ReadCheck,
        embed_query: EmbedQuery,
        clock: Clock,
    ) -> None:
        self._records = records
        self._alerts = alerts
        self._read_check = read_check
        self._embed_query = embed_query
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
            {alert_state.alert.owner: await self._read_check(alert_state.alert) for alert_state in alerts}
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
                self._vectors[key] = await self._embed_query(collection, alert.query)
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
        return await asyncio.to_thread(_analyze, pieces, full_texts, language)

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


def _analyze(
    pieces: Mapping[str, Sequence[IndexedChunk]], texts: Mapping[str, str], language: Language
) -> list[AnalyzedCaption]:
    captions = []
    for name, chunks in pieces.items():
        first = chunks[0]
        text = texts.get(name, first.chunk.text)
        vectors = tuple(chunk.vector for chunk in chunks if chunk.vector is not None)
        captions.append(
            analyze_caption(first.document, text, language, chunk=first.chunk.id, vectors=vectors)
        )
    return captions


def _matches(query: AlertQuery, captions: Sequence[AnalyzedCaption], shows: CanRead) -> tuple[Match, ...]:
    matches = []
    for caption in captions:
        why = reason(query, caption)
        if why is not None and shows(caption.document):
            document = caption.document
            matches.append(Match(document.id, document.source, document.occurred, why))
    return tuple(matches)


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
