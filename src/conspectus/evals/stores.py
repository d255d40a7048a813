"""Stores for an evaluation, which are deleted afterwards."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from conspectus import bootstrap
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from conspectus.model.results import Hit
from conspectus.ports import Progress
from conspectus.settings import Settings


def fresh_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for a store that is deleted afterwards."""
    return tempfile.TemporaryDirectory(prefix="conspectus-eval-")


@asynccontextmanager
async def fresh_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Open an engine on an empty store that is deleted afterwards."""
    with fresh_folder() as folder:
        async with bootstrap.open(folder, settings=settings) as engine:
            yield engine


async def store_documents(
    engine: Engine, sources: Mapping[str, Sequence[NewDocument]], progress: Progress | None
) -> dict[str, dict[str, str]]:
    """Add and embed all documents. Returns the keys by stored id, for documents by source."""
    keys: dict[str, dict[str, str]] = {}
    for source, documents in sources.items():
        written = await engine.add(documents, source=source, progress=progress)
        pairs = zip(written, documents, strict=True)
        keys[source] = {stored.id: document.key or "" for stored, document in pairs}
    await engine.documents.wait_until_embedded(progress=progress)
    return keys


async def wait_for_entities(engine: Engine, progress: Progress | None) -> None:
    await engine.graph.set_entity_extraction()
    await engine.graph.wait_until_extracted(progress=progress)


@dataclass(frozen=True, slots=True)
class FilledStore:
    """A filled engine. `keys` maps stored documents to the keys of the set."""

    engine: Engine
    settings: Settings
    keys: Mapping[str, str]
    progress: Progress | None

    def report(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, done, total)

    async def hits(self, query: Query, *, depth: int) -> Sequence[Hit]:
        """Return the best hit of each of the best `depth` documents, or of all if there are fewer."""
        best: dict[str, Hit] = {}
        for limit in (2 * depth, self.settings.max_limit):
            limited = replace(query, limit=min(limit, self.settings.max_limit))
            hits = (await self.engine.retrieve(limited)).hits
            best = {}
            for hit in hits:
                best.setdefault(hit.document.id, hit)
            if len(best) >= depth or len(hits) < limited.limit:
                break
        return list(best.values())[:depth]
