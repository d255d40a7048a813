"""Answers of chats in the database, so that a client may go on with one at any process.

No statement here waits for a writer: frames come first, and the row says how many of them there are.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from conspectus.model.ids import UserId
from conspectus.ports.chat import RemoteChatEvent, Utterance
from conspectus.records.core.dialects import MICROSECONDS, DatabaseTime
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import spoken, spoken_frames


class SqlChatRegistry:
    """The `SpokenAnswers` port."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._beside = transactions.beside

    async def begin(self, stream: str, person: UserId) -> None:
        """Let others know of an answer."""
        await self._beside(partial(_begin, stream=stream, person=person))

    async def say(self, utterance: Utterance) -> None:
        """Keep what is new of an answer."""
        await self._beside(partial(_say, utterance=utterance))

    async def pulse(self, streams: Sequence[str]) -> Mapping[str, float]:
        """Let others know that these are still made; seconds since each was passed on elsewhere."""
        return await self._beside(partial(_pulse, streams=streams)) if streams else {}

    async def overhear(self, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
        """What there is of an answer of this person from a frame on; None where there is none."""
        found = await self._read(partial(_overheard, stream=stream, person=person, first=first))
        if found is not None:
            await self._beside(partial(_hear, stream=stream))
        return found

    async def forget(self, streams: Sequence[str] = (), *, older: float | None = None) -> None:
        """Delete answers, and with `older` all that were not written to for so many seconds."""
        await self._beside(partial(_forget, streams=tuple(streams), older=older))


def _begin(connection: Connection, stream: str, person: UserId) -> None:
    row = {"stream": stream, "person": person, "documents": "[]", "frames": 0, "over": 0, "heard": 0}
    connection.execute(insert(spoken).values(**row, written=DatabaseTime()))


def _pulse(connection: Connection, streams: Sequence[str]) -> dict[str, float]:
    chosen = spoken.c.stream.in_(streams)
    connection.execute(update(spoken).where(chosen).values(written=DatabaseTime()))
    found = connection.execute(select(spoken.c.stream, DatabaseTime() - spoken.c.heard).where(chosen))
    return {stream: ago / MICROSECONDS for stream, ago in found}


def _say(connection: Connection, utterance: Utterance) -> None:
    named = [
        {"stream": utterance.stream, "number": utterance.first + place, "frame": frame}
        for place, frame in enumerate(utterance.frames)
    ]
    if connection.execute(select(spoken.c.stream).where(spoken.c.stream == utterance.stream)).first() is None:
        return
    if named:
        connection.execute(insert(spoken_frames), named)
    values: dict[str, Any] = {"frames": utterance.first + len(named), "over": int(utterance.over)}
    values |= {"documents": json.dumps(utterance.documents), "written": DatabaseTime()}
    connection.execute(update(spoken).where(spoken.c.stream == utterance.stream).values(values))


def _overheard(connection: Connection, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
    own = (spoken.c.stream == stream, spoken.c.person == person)
    row = connection.execute(select(spoken, DatabaseTime() - spoken.c.written).where(*own)).one_or_none()
    if row is None:
        return None
    chosen = (spoken_frames.c.stream == stream, spoken_frames.c.number >= first)
    ordered = select(spoken_frames.c.frame).where(*chosen, spoken_frames.c.number < row.frames)
    frames = connection.execute(ordered.order_by(spoken_frames.c.number)).scalars().all()
    if len(frames) < row.frames - first:
        return None
    silent = float(row[-1]) / MICROSECONDS
    return RemoteChatEvent(
        tuple(frames), row.frames, bool(row.over), tuple(json.loads(row.documents)), silent
    )


def _hear(connection: Connection, stream: str) -> None:
    connection.execute(update(spoken).where(spoken.c.stream == stream).values(heard=DatabaseTime()))


def _forget(connection: Connection, streams: Sequence[str], older: float | None) -> None:
    chosen = list(streams)
    if older is not None:
        late = spoken.c.written < DatabaseTime() - int(older * MICROSECONDS)
        chosen += connection.execute(select(spoken.c.stream).where(late)).scalars().all()
    for stream in chosen:
        connection.execute(delete(spoken).where(spoken.c.stream == stream))
