"""Looking through passages for names behind the writers: a reader per collection, restartable at any moment.

What is left to do is read from the store each time, so a killed reader loses at most one batch of work.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from conspectus.errors import ConspectusError, ProviderError, ProviderUnavailable, StorageError
from conspectus.graph.keys import key_of
from conspectus.ingest.backfill import ATTEMPTS, GATHERING_SECONDS, POLL_SECONDS, Turn
from conspectus.model.graph import Found
from conspectus.model.ids import CollectionId
from conspectus.ports import Progress
from conspectus.ports.graphs import SUBJECT, Extractor, Names, Unread

BATCH = 100
MOST_GATHERINGS = 10
"""So many times in a row more may come before what came is looked through."""
MOST_NAMES = 100
"""So many different names of a passage are kept; a longer list of them connects nothing."""
LONGEST_TITLE = 8
"""A title of more words says something, and is no name."""

_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ENDS = re.compile(r"[?!\n]")


def title_names(title: str) -> list[Found]:
    """The name that a title is, with and without what is said in brackets after it."""
    if not title.strip() or len(title.split()) > LONGEST_TITLE or _ENDS.search(title):
        return []
    bare = _ASIDE.sub("", title)
    spelt = {key_of(each): each for each in (title, bare) if each.strip()}
    return [Found(0, 0, name.strip(), key, SUBJECT) for key, name in spelt.items() if key]


@dataclass(slots=True)
class Reading:
    """One collection's reader: how far it is, and whether there came more while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    error: ConspectusError | None = None
    refused: ProviderError | None = None


class NameReader:
    """Starts, watches and stops the readers of one engine."""

    def __init__(self, names: Names, turn: Turn, extractor: Callable[[], Extractor]) -> None:
        self._names = names
        self._turn = turn
        self._make = extractor
        self._extractor: Extractor | None = None
        self._readings: dict[str, Reading] = {}

    def extractor(self) -> Extractor:
        """What finds names here, made when it is first needed."""
        if self._extractor is None:
            self._extractor = self._make()
        return self._extractor

    def wake(self, collection: CollectionId) -> Reading:
        """Make sure that a reader is running that will see everything committed before this call."""
        reading = self._readings.setdefault(collection, Reading())
        reading.again = True
        reading.wanted.clear()
        if reading.task is None or reading.task.done():
            reading.error = reading.refused = None
            reading.task = asyncio.create_task(self._run(reading, collection))
        return reading

    def problem(self, collection: CollectionId) -> ConspectusError | None:
        """Why the last reader of the collection gave up, or a passage that could not be looked through."""
        reading = self._readings.get(collection)
        return None if reading is None else reading.error or reading.refused

    async def settle(self, collection: CollectionId, progress: Progress | None = None) -> int:
        """Wait until all passages are looked through; how many were. Raises what stopped the reader."""
        reading = self.wake(collection)
        reading.wanted.set()
        before, total = reading.done, await self._names.count_unread(collection)
        while reading.task is not None and not reading.task.done():
            if progress is not None:
                progress("looking for names", min(reading.done - before, total), total)
            await asyncio.wait({reading.task}, timeout=POLL_SECONDS)
        if reading.task is not None:
            await reading.task
        if problem := self.problem(collection):
            raise problem
        if progress is not None and total:
            progress("looking for names", total, total)
        return reading.done - before

    async def close(self) -> None:
        """Stop all readers; what they did not finish is found again at the next start."""
        tasks = [each.task for each in self._readings.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._extractor is not None:
            await self._extractor.close()

    async def _run(self, reading: Reading, collection: CollectionId) -> None:
        failures = 0
        while reading.again:
            await _gathering(reading)
            reading.again = False
            try:
                await self._drain(reading, collection)
                failures = 0
            except ProviderUnavailable as fault:
                failures += 1
                if failures == ATTEMPTS:
                    reading.error = fault
                    return
                reading.again = True
                await asyncio.sleep(fault.retry_after or 2.0**failures)
            except ConspectusError as fault:
                reading.error = fault
                return
            except OSError as fault:
                reading.error = StorageError(f"looking for names stopped: {fault}")
                return

    async def _drain(self, reading: Reading, collection: CollectionId) -> None:
        while await self._names.unread(collection, limit=1):
            with self._turn() as mine:
                if mine:
                    await self._read(reading, collection)
                    return
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self, reading: Reading, collection: CollectionId) -> None:
        while batch := await self._names.unread(collection, limit=BATCH):
            found = await self._found(reading, batch)
            await self._names.put({each.chunk: names for each, names in zip(batch, found, strict=True)})
            reading.done += len(batch)
            if len(batch) < BATCH:
                await _gathering(reading)

    async def _found(self, reading: Reading, batch: Sequence[Unread]) -> list[list[Found]]:
        """The names of each; one whose text is refused has those of its title, and that is told."""
        try:
            texts = await self.extractor().extract([each.text for each in batch])
        except ProviderUnavailable:
            raise
        except ProviderError as refusal:
            if not refusal.about_text:
                raise
            if len(batch) > 1:
                return [names for each in batch for names in await self._found(reading, [each])]
            reading.refused = refusal
            texts = [()]
        return [_kept(each, names) for each, names in zip(batch, texts, strict=True)]


async def _gathering(reading: Reading) -> None:
    """Let more come together, unless somebody waits: each batch costs writers the time of a commit.

    While more keeps coming this goes on, but not for long.
    """
    for _ in range(MOST_GATHERINGS):
        reading.again = False
        with suppress(TimeoutError):
            await asyncio.wait_for(reading.wanted.wait(), GATHERING_SECONDS)
        if reading.wanted.is_set() or not reading.again:
            return


def _kept(unread: Unread, found: Sequence[Found]) -> list[Found]:
    first: dict[str, Found] = {}
    about = [Found(0, 0, name, key_of(name), SUBJECT) for name in unread.about]
    told = [Found(0, 0, name, key_of(name), "entity") for name in unread.told]
    for each in (*title_names(unread.title), *about, *found, *told):
        if each.key:
            first.setdefault(each.key, each)
    return list(first.values())[:MOST_NAMES]
