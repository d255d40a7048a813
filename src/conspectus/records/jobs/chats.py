"""Chats in progress, which any process can resume.

Statements do not wait for writers. The frames of a chat are written first, then its row with their number.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from conspectus.model.ids import UserId
from conspectus.ports.chat import AnswerFrames, RemoteChatEvent
from conspectus.records.core.database_clock import MICROSECONDS, DatabaseTime
from conspectus.records.core.store_methods import SqlStore, autocommitted
from conspectus.records.tables.jobs import chat_answers, chat_frames


def _begin_chat(connection: Connection, stream: str, person: UserId) -> None:
    row = {"stream": stream, "person": person, "documents": "[]", "frames": 0, "finished": 0, "read_at": 0}
    connection.execute(insert(chat_answers).values(**row, written=DatabaseTime()))


def _pulse(connection: Connection, streams: Sequence[str]) -> dict[str, float]:
    of_streams = chat_answers.c.stream.in_(streams)
    connection.execute(update(chat_answers).where(of_streams).values(written=DatabaseTime()))
    rows = connection.execute(
        select(chat_answers.c.stream, DatabaseTime() - chat_answers.c.read_at).where(of_streams)
    )
    return {stream: microseconds / MICROSECONDS for stream, microseconds in rows}


def _publish(connection: Connection, answer: AnswerFrames) -> None:
    """Publish new frames of a response, unless it was deleted."""
    rows = [
        {"stream": answer.stream, "number": answer.first + offset, "frame": frame}
        for offset, frame in enumerate(answer.frames)
    ]
    stored = select(chat_answers.c.stream).where(chat_answers.c.stream == answer.stream)
    if connection.execute(stored).first() is None:
        return
    if rows:
        connection.execute(insert(chat_frames), rows)
    values: dict[str, Any] = {"frames": answer.first + len(rows), "finished": int(answer.finished)}
    values |= {"documents": json.dumps(answer.documents), "written": DatabaseTime()}
    connection.execute(update(chat_answers).where(chat_answers.c.stream == answer.stream).values(values))


def _read_chat(connection: Connection, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
    own_chat = (chat_answers.c.stream == stream, chat_answers.c.person == person)
    row = connection.execute(
        select(chat_answers, DatabaseTime() - chat_answers.c.written).where(*own_chat)
    ).one_or_none()
    if row is None:
        return None
    new_frames = (chat_frames.c.stream == stream, chat_frames.c.number >= first)
    ordered = select(chat_frames.c.frame).where(*new_frames, chat_frames.c.number < row.frames)
    frames = connection.execute(ordered.order_by(chat_frames.c.number)).scalars().all()
    if len(frames) < row.frames - first:
        return None
    silent_seconds = float(row[-1]) / MICROSECONDS
    return RemoteChatEvent(
        tuple(frames), row.frames, bool(row.finished), tuple(json.loads(row.documents)), silent_seconds
    )


def _forget_chats(connection: Connection, streams: Sequence[str] = (), *, older: float | None = None) -> None:
    forgotten = list(streams)
    if older is not None:
        late = chat_answers.c.written < DatabaseTime() - int(older * MICROSECONDS)
        forgotten += connection.execute(select(chat_answers.c.stream).where(late)).scalars().all()
    for stream in forgotten:
        connection.execute(delete(chat_answers).where(chat_answers.c.stream == stream))


class SqlChatRegistry(SqlStore):
    """The port `ChatRegistry`, with statements that do not wait for writers; see the port for the docs."""

    begin = autocommitted(_begin_chat)
    publish = autocommitted(_publish)
    forget = autocommitted(_forget_chats)

    async def pulse(self, streams: Sequence[str]) -> Mapping[str, float]:
        return await self.transactions.autocommit(partial(_pulse, streams=streams)) if streams else {}

    async def read_remote(self, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
        read = partial(_read_chat, stream=stream, person=person, first=first)
        event = await self.transactions.read(read)
        if event is not None:
            read_now = update(chat_answers).where(chat_answers.c.stream == stream)
            read_now = read_now.values(read_at=DatabaseTime())
            await self.transactions.autocommit(lambda connection: connection.execute(read_now).close())
        return event
