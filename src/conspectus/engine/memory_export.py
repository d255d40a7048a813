"""Export of the memories of a scope as JSON Lines; quarantined memories come last."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import includes_role
from conspectus.engine.context import EngineContext
from conspectus.engine.document_inputs import DocumentInputs
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.service import Service
from conspectus.ingest.quarantine import restore_document
from conspectus.memory.documents import GIVEN
from conspectus.memory.jsonl import GivenVector, Reference, line_of
from conspectus.memory.scopes import scope_of
from conspectus.model.filter import EVERYTHING, Not
from conspectus.model.memory import Memory, MemoryExport, Scope
from conspectus.model.quarantine import as_given
from conspectus.model.records import Document
from conspectus.text.times import canonical, parse_instant

Position = tuple[datetime, str]
"""The time of recording and the id of a document."""
QUARANTINED: Final = "quarantined"
"""The first word of a cursor among quarantined memories, and their name in `left_out`."""


class MemoryExporter(Service, checked=False):
    """Writes the memories of a scope as lines, with all versions."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._inputs = DocumentInputs(context)

    async def page(
        self, scope: Scope, collection: str, *, after: str | None, limit: int | None
    ) -> MemoryExport:
        """Return a page of lines; the last one counts the memories that are left out. Raises InvalidInput."""
        size = limit or self._parts.settings.max_export_lines
        memory_sources = await self._reader.memory_sources(scope, collection)
        if after is not None and after.partition(" ")[0] == QUARANTINED:
            histories, following = await self._read_quarantined(memory_sources, after, size)
        else:
            histories, following = await self._read_visible(memory_sources, after, size)
        references = await self._read_references(memory_sources, histories)
        vectors = await self._read_vectors(memory_sources, histories)
        lines = await asyncio.to_thread(
            lambda: tuple(line_of(history, references, vectors.get(history[-1].id)) for history in histories)
        )
        left_out = {} if following is not None else await self._count_left_out(memory_sources)
        return MemoryExport(lines, following, left_out)

    async def _read_vectors(
        self, memory_sources: MemorySources, histories: Sequence[Sequence[Memory]]
    ) -> dict[str, GivenVector]:
        """Return the vectors that were given with the newest states, by the id of the memory."""
        space = memory_sources.access.collection.space
        newest = [(history[-1].document, history[-1].text) for history in histories]
        vectors = await self._inputs.read_given_vectors(newest, memory_sources.by_id, space)
        return {
            str(document): GivenVector(vector, space.name)
            for document, vector in vectors.items()
            if space is not None
        }

    async def _read_visible(
        self, memory_sources: MemorySources, after: str | None, limit: int
    ) -> tuple[list[list[Memory]], str | None]:
        """Return a page of memories with their versions, and the cursor of the next page."""
        rows, following = await memory_sources.page(GIVEN, after=after, limit=limit)
        stored = await memory_sources.histories([document for document, _ in rows])
        histories = [[memory_in(memory_sources, *state) for state in history] for history in stored]
        if following is None and self._may_review(memory_sources):
            async for _ in self._iterate_quarantined(memory_sources, None):
                # There is at least one quarantined memory.
                return histories, QUARANTINED
        return histories, following

    async def _read_quarantined(
        self, memory_sources: MemorySources, after: str, limit: int
    ) -> tuple[list[list[Memory]], str | None]:
        """Return quarantined memories with their versions, marked as such, and the next cursor."""
        if not self._may_review(memory_sources):
            return [], None
        histories: list[list[Memory]] = []
        last = after
        async for document in self._iterate_quarantined(memory_sources, _parse_position(after)):
            if len(histories) == limit:
                return histories, last
            last = f"{QUARANTINED} {canonical(document.recorded)} {document.id}"
            before = await memory_sources.versions(document)
            marked = replace(as_given(document), trust="quarantined")
            newest = memory_in(memory_sources, marked, restore_document(document).text)
            histories.append([*(memory_in(memory_sources, *state) for state in before), newest])
        return histories, None

    async def _iterate_quarantined(
        self, memory_sources: MemorySources, after: Position | None
    ) -> AsyncIterator[Document]:
        """Yield quarantined memories by the time of recording."""
        async for page in self._reader.stored.read_quarantined(memory_sources, EVERYTHING):
            for document in page:
                if after is None or (document.recorded, document.id) > after:
                    yield document

    def _may_review(self, memory_sources: MemorySources) -> bool:
        """Return whether the person may read quarantined texts."""
        is_manager = includes_role(memory_sources.access.roles.collection, "manager")
        return is_manager and self._person.origin in {None, "user"}

    async def _count_left_out(self, memory_sources: MemorySources) -> Mapping[str, int]:
        """Count the memories that no line contains, by kind."""
        counts = {
            "extracted facts": await memory_sources.count(Not(GIVEN)),
            "feedback": await self._parts.feedback.count(memory_sources.ids),
        }
        if not self._may_review(memory_sources):
            hidden = [document async for document in self._iterate_quarantined(memory_sources, None)]
            counts[QUARANTINED] = len(hidden)
        return {name: count for name, count in counts.items() if count}

    async def _read_references(
        self, memory_sources: MemorySources, histories: Sequence[Sequence[Memory]]
    ) -> dict[str, Reference]:
        """Return the memories that these lines refer to, as far as they exist, by id."""
        ids = {
            memory_id
            for history in histories
            for state in history
            for memory_id in (*state.closes, *state.near, *filter(None, [state.closed_by]))
        }
        documents = await self._reader.stored.documents(memory_sources, sorted(ids))
        return {
            str(document.id): Reference(scope_of(memory_sources.by_id[document.source].name), document.key)
            for document in documents
        }


def _parse_position(cursor: str) -> Position | None:
    """Return the position of a cursor among quarantined memories; None for the first. Raises InvalidInput."""
    _, _, last = cursor.partition(" ")
    if not last:
        return None
    recorded, _, document = last.partition(" ")
    return parse_instant(recorded), document
