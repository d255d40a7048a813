"""Standing alerts held against every caption, as the history of changes tells of it.

Each alert remembers up to which change it was checked, and is moved on together with what it tells: so no
caption is missed and none is told twice, whenever the process dies.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, Collection, Document
from conspectus.model.streams import Alert
from conspectus.ports import Clock, Reader, Records, Vectors
from conspectus.ports.alerts import Alerts, Behind, Checked, Match
from conspectus.streams.alert_matching import AlertQuery, Heard, Language, heard, question, reason

Shows = Callable[[Document], bool]
Eyes = Callable[[Alert], Awaitable[Shows | None]]
"""What the owner of an alert may see of its collection at this moment; None if nothing at all."""
Meaning = Callable[[Collection, str], Awaitable[Vectors | None]]
"""The vector of a question in the space of a collection, None without one. Raises ProviderError."""

CHANGES: Final = 200
CHUNKS: Final = 4_096
"""So many changes are looked at in one go, and so many chunks are read at once."""
PAUSE: Final = 5.0
"""Seconds until an alert is checked again whose question could not be embedded."""
REMEMBERED: Final = 10_000


class Checker:
    """Checks the alerts of a store, a part of its history at a time."""

    def __init__(
        self, records: Records, alerts: Alerts, *, eyes: Eyes, meaning: Meaning, clock: Clock
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
        """Take every alert that is behind further; whether there was one."""
        now = time.monotonic()
        self._later = {alert: until for alert, until in self._later.items() if until > now}
        behind = [each for each in await self._alerts.behind() if each.alert.id not in self._later]
        if not behind:
            return False
        homes = {str(each.id): each for each in await self._records.collections()}
        for (home, checked), alerts in groupby(
            behind, lambda each: (each.alert.collection, each.alert.checked)
        ):
            if home in homes:
                await self._check(homes[home], checked, list(alerts))
        return True

    async def _check(self, home: Collection, checked: int, alerts: Sequence[Behind]) -> None:
        reader = self._records.reader(home.id, home.space)
        changes = await reader.changes_since(checked, limit=CHANGES)
        if not changes:
            return
        captions = await self._captions(reader, changes, self._language(home.language))
        until = changes[-1].sequence
        views = {each.alert.owner: await self._eyes(each.alert) for each in alerts} if captions else {}
        results = [
            await self._result(each, until, captions, home=home, shows=views.get(each.alert.owner))
            for each in alerts
        ]
        await self._alerts.record(results, now=self._clock())

    async def _result(
        self, behind: Behind, until: int, captions: Sequence[Heard], *, home: Collection, shows: Shows | None
    ) -> Checked:
        alert = behind.alert
        fresh = [each for each in captions if each.chunk > behind.since]
        mine = [each for each in fresh if not alert.streams or each.document.source in alert.streams]
        if shows is None or not mine:
            return Checked(alert, until)
        vector, known = await self._vector(alert, mine, home)
        asked = question(
            alert.query, alert.where, self._language(home.language), floor=alert.floor, vector=vector
        )
        matches = await asyncio.to_thread(_matches, asked, mine, shows)
        return Checked(alert, until if known else alert.checked, matches)

    async def _vector(
        self, alert: Alert, captions: Sequence[Heard], home: Collection
    ) -> tuple[Vectors | None, bool]:
        """The question's vector, where there is anything to compare, and whether that is the last word."""
        comparable = any(each.vectors for each in captions)
        if home.space is None or alert.floor is None or not alert.query.strip() or not comparable:
            return None, True
        key = (home.space.name, alert.query)
        if key not in self._vectors:
            if len(self._vectors) >= REMEMBERED:
                self._vectors.clear()
            try:
                self._vectors[key] = await self._meaning(home, alert.query)
            except ProviderUnavailable:
                self._later[alert.id] = time.monotonic() + PAUSE
                return None, False
            except ProviderError:
                self._vectors[key] = None
        return self._vectors[key], True

    async def _captions(
        self, reader: Reader, changes: Sequence[Change], language: Language
    ) -> Sequence[Heard]:
        """The captions that were written or got their vectors, as they are now."""
        pieces: dict[str, list[IndexedChunk]] = {}
        for first, last in _put(changes):
            for each in await reader.chunks(ChunkId(first), ChunkId(last)):
                if each.document.kind == "caption":
                    pieces.setdefault(each.document.id, []).append(each)
        longer = [found[0].document.id for found in pieces.values() if found[0].document.chunks > 1]
        texts = await self._records.texts(longer) if longer else {}
        whole = {str(name): text for name, text in texts.items()}
        return await asyncio.to_thread(_heard, pieces, whole, language)

    def _language(self, name: str | None) -> Language:
        if name not in self._languages:
            self._languages[name] = Language(name)
        return self._languages[name]


def _put(changes: Sequence[Change]) -> Iterator[tuple[int, int]]:
    """What was put, in ranges that do not overlap and are not too long to be read at once."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(
        (int(each.first), int(each.last)) for each in changes if each.operation == "put"
    ):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    for begin, end in found:
        for start in range(begin, end + 1, CHUNKS):
            yield start, min(start + CHUNKS - 1, end)


def _heard(
    pieces: Mapping[str, Sequence[IndexedChunk]], texts: Mapping[str, str], language: Language
) -> list[Heard]:
    found = []
    for name, chunks in pieces.items():
        first = chunks[0]
        text = texts.get(name, first.chunk.text)
        vectors = tuple(each.vector for each in chunks if each.vector is not None)
        found.append(heard(first.document, text, language, chunk=first.chunk.id, vectors=vectors))
    return found


def _matches(asked: AlertQuery, captions: Sequence[Heard], shows: Shows) -> tuple[Match, ...]:
    found = []
    for each in captions:
        why = reason(asked, each)
        if why is not None and shows(each.document):
            document = each.document
            found.append(Match(document.id, document.source, document.occurred, why))
    return tuple(found)
