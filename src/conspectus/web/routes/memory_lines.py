"""Memories as JSON lines: taken in as they arrive, and given out as they are read."""

from collections import Counter
from collections.abc import AsyncIterable
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Depends, Request, Response

from conspectus.engine import Engine
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.ingest.prepare import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.memory.jsonl import renumber
from conspectus.model.memory import Scope
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.memories import MEMORIES, OfScope, spelt
from conspectus.web.ndjson import LinesRoute, arriving, lines_in, sent_as_lines
from conspectus.web.openapi import Section
from conspectus.web.problem_details import Refused, problem_of
from conspectus.web.schemas.base import Count, ResponseModel

router = Section("memory", route_class=LinesRoute, dependencies=[Depends(spelt)])


class ImportedAnswer(ResponseModel):
    """What became of lines that were taken in."""

    added: Count
    replaced: Count
    updated: Count
    unchanged: Count


@router.post(f"{MEMORIES}/import", include_in_schema=False, dependencies=[Unhurried])
async def import_lines(whose: OfScope, request: Request, engine: EngineOf) -> ImportedAnswer:
    """Take in lines, batch by batch; where no scope is named, they go where they say."""
    settings = request.app.state.listeners.settings
    pieces = arriving(request.stream(), settings.request_timeout_seconds)
    scope = None if whose.scope == Scope() else whose.scope
    where = {"collection": whose.collection, "scope": scope}
    return await take_memories(pieces, engine, where, longest=settings.max_request_bytes)


@router.get(f"{MEMORIES}/export", include_in_schema=False, dependencies=[Unhurried])
async def export_lines(whose: OfScope, engine: EngineOf) -> Response:
    """All memories of a scope."""
    return await sent_as_lines(partial(engine.memory.export, **whose.told), lambda page: page.lines)


class TakenMemories:
    """What is written so far, and the lines that wait to be."""

    def __init__(self, engine: Engine, where: dict[str, Any]) -> None:
        self._engine = engine
        self._where = where
        self._waiting: list[tuple[int, str]] = []
        self._size = 0
        self.counts = Counter(dict.fromkeys(ImportedAnswer.model_fields, 0))

    async def take(self, number: int, line: bytes) -> None:
        """Take in one line. Raises InvalidInput with its number."""
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise InvalidInput(f"line {number}", f"is not UTF-8: {fault.reason}") from fault
        if len(self._waiting) == BATCH_DOCUMENTS or self._size + len(text) > BATCH_CHARACTERS:
            await self.write()
        self._waiting.append((number, text))
        self._size += len(text)

    async def write(self) -> None:
        """Write what waits. Raises InvalidInput with the number of a line, or Refused with those of all."""
        if not self._waiting:
            return
        numbers = [number for number, _ in self._waiting]
        try:
            done = await self._engine.memory.import_lines([text for _, text in self._waiting], **self._where)
        except InvalidInput as fault:
            renumber(fault, lambda number: numbers[number - 1])
            raise
        except ConspectusError as fault:
            raise _refused(fault, first_line=numbers[0], last_line=numbers[-1]) from fault
        self.counts.update(each.outcome for each in done)
        self._waiting, self._size = [], 0


async def take_memories(
    pieces: AsyncIterable[bytes], engine: Engine, where: dict[str, Any], *, longest: int
) -> ImportedAnswer:
    """Write the memories of a body, of which never more than a batch is held.

    Raises Refused, in whose problem are the number of the line at fault, or those of its batch, counted from
    1, and what is written of those before it.
    """
    taken = TakenMemories(engine, where)
    try:
        async for number, line in lines_in(pieces, longest):
            await taken.take(number, line)
        await taken.write()
    except Refused as refused:
        facts = {**refused.problem.facts, **taken.counts}
        raise Refused(replace(refused.problem, facts=facts)) from refused
    except ConspectusError as fault:
        raise _refused(fault, **taken.counts) from fault
    return ImportedAnswer(**taken.counts)


def _refused(fault: ConspectusError, **facts: int) -> Refused:
    problem = problem_of(fault)
    return Refused(replace(problem, facts={**problem.facts, **facts}))
