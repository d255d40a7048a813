"""Looking through passages for names behind the writers: a reader per collection, restartable at any moment.

What is left to do is read from the store each time, so a killed reader loses at most one batch of work.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from conspectus.errors import ConspectusError, ProviderError, ProviderUnavailable
from conspectus.graph.name_keys import key_of
from conspectus.ingest.background_workers import BackgroundTask, PendingWork, Workers
from conspectus.model.graph import Mention
from conspectus.model.ids import CollectionId
from conspectus.ports import Progress
from conspectus.ports.graphs import SUBJECT, EntityExtractor, MentionStore, Unread
from conspectus.ports.locks import Turn

BATCH = 100
MOST_GATHERINGS = 10
"""So many times in a row more may come before what came is looked through."""
MOST_NAMES = 100
"""So many different names of a passage are kept; a longer list of them connects nothing."""
LONGEST_TITLE = 8
"""A title of more words says something, and is no name."""

_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_ENDS = re.compile(r"[?!\n]")


def title_names(title: str) -> list[Mention]:
    """The name that a title is, with and without what is said in brackets after it."""
    if not title.strip() or len(title.split()) > LONGEST_TITLE or _ENDS.search(title):
        return []
    bare = _ASIDE.sub("", title)
    spelt = {key_of(each): each for each in (title, bare) if each.strip()}
    return [Mention(0, 0, name.strip(), key, SUBJECT) for key, name in spelt.items() if key]


class NameReader:
    """Starts, watches and stops the readers of one engine."""

    def __init__(self, names: MentionStore, turn: Turn, extractor: Callable[[], EntityExtractor]) -> None:
        self._names = names
        self._workers = Workers(turn, "looking for names")
        self._make = extractor
        self._extractor: EntityExtractor | None = None
        self._refused: dict[str, ProviderError] = {}

    def extractor(self) -> EntityExtractor:
        """What finds names here, made when it is first needed."""
        if self._extractor is None:
            self._extractor = self._make()
        return self._extractor

    def wake(self, collection: CollectionId) -> PendingWork:
        """Make sure that a reader is running that will see everything committed before this call."""
        if not self._workers.of(collection).runs:
            self._refused.pop(collection, None)
        waits = partial(self._names.unread, collection, limit=1)
        return self._workers.wake(
            collection, BackgroundTask(waits, partial(self._read, collection), MOST_GATHERINGS)
        )

    def problem(self, collection: CollectionId) -> ConspectusError | None:
        """Why the last reader of the collection gave up, or a passage that could not be looked through."""
        return self._workers.of(collection).error or self._refused.get(collection)

    async def settle(self, collection: CollectionId, progress: Progress | None = None) -> int:
        """Wait until all passages are looked through; how many were. Raises what stopped the reader."""
        total = partial(self._names.count_unread, collection)
        read = await self._workers.settle(self.wake(collection), total, progress)
        if problem := self.problem(collection):
            raise problem
        return read

    async def close(self) -> None:
        """Stop all readers; what they did not finish is found again at the next start."""
        await self._workers.close()
        if self._extractor is not None:
            await self._extractor.close()

    async def _read(self, collection: CollectionId, work: PendingWork) -> None:
        while batch := await self._names.unread(collection, limit=BATCH):
            found = await self._found(collection, batch)
            await self._names.put({each.chunk: names for each, names in zip(batch, found, strict=True)})
            work.done += len(batch)
            if len(batch) < BATCH:
                await work.gathering(MOST_GATHERINGS)

    async def _found(self, collection: CollectionId, batch: Sequence[Unread]) -> list[list[Mention]]:
        """The names of each; one whose text is refused has those of its title, and that is told."""
        try:
            texts = await self.extractor().extract([each.text for each in batch])
        except ProviderUnavailable:
            raise
        except ProviderError as refusal:
            if not refusal.about_text:
                raise
            if len(batch) > 1:
                return [names for each in batch for names in await self._found(collection, [each])]
            self._refused[collection] = refusal
            texts = [()]
        return [_kept(each, names) for each, names in zip(batch, texts, strict=True)]


def _kept(unread: Unread, found: Sequence[Mention]) -> list[Mention]:
    first: dict[str, Mention] = {}
    about = [Mention(0, 0, name, key_of(name), SUBJECT) for name in unread.about]
    told = [Mention(0, 0, name, key_of(name), "entity") for name in unread.told]
    for each in (*title_names(unread.title), *about, *found, *told):
        if each.key:
            first.setdefault(each.key, each)
    return list(first.values())[:MOST_NAMES]
