"""Channels of a server."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from conspectus.client.collections import RemoteCollections
from conspectus.client.documents import RemoteDocuments
from conspectus.client.encode import budget_json, encoded, metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import ask, work
from conspectus.client.service import RemoteService
from conspectus.engine.channels import ChannelService
from conspectus.ingest.messages import MessageImportOptions, handed_in, named, take_in
from conspectus.ingest.prepare import batches, period
from conspectus.model.channels import (
    ArchiveKind,
    ChannelArchive,
    ChannelQuery,
    ChannelWindow,
    ImportReport,
    NewMessage,
)
from conspectus.model.jobs import Upload
from conspectus.model.query import Budget
from conspectus.model.records import Json, Written


@derived
class RemoteChannels(RemoteService, ChannelService):
    """Channels of a server."""

    async def post(
        self,
        messages: NewMessage | Iterable[NewMessage],
        *,
        channel: str,
        collection: str = "default",
        **how: Unpack[MessageImportOptions],
    ) -> list[Written]:
        given = [messages] if isinstance(messages, NewMessage) else messages
        progress = how.get("progress")
        target = await self._beside(RemoteCollections).get_or_create_source(
            channel, collection=collection, kind="channel"
        )
        written: list[Written] = []
        for batch in batches(given):
            body: Json = {
                "channel": target.id,
                "collection": target.collection,
                "messages": [_message_json(each) for each in batch],
                "link": how.get("link", True),
            }
            request = replace(work("/messages", body), noted=True)
            written += await self._channel.several(Written, request)
            if progress is not None:
                progress("writing", len(written), 0)
        if how.get("wait", False):
            await self._beside(RemoteDocuments).wait_until_embedded(
                collection=target.collection, progress=progress
            )
        return written

    async def window(self, question: ChannelQuery, budget: int | Budget) -> ChannelWindow:
        asked = encoded(question)
        body = {**(asked if isinstance(asked, dict) else {}), "budget": budget_json(budget)}
        return await self._channel.one(ChannelWindow, ask("/messages/context", body))

    async def import_chat(
        self,
        archive: str | Path | Upload,
        *,
        kind: ArchiveKind | None = None,
        collection: str = "default",
        **how: Unpack[MessageImportOptions],
    ) -> ImportReport:
        home = await self._beside(RemoteCollections).get_or_create(collection)
        with TemporaryDirectory() as folder:
            path = handed_in(archive, Path(folder)) if isinstance(archive, Upload) else Path(archive)
            with named(archive):
                read = await asyncio.to_thread(self._archives.read, path.expanduser(), kind=kind)

        async def put(channel: ChannelArchive, messages: Iterable[NewMessage]) -> Sequence[Written]:
            target = await self._beside(RemoteCollections).get_or_create_source(
                channel.name, collection=home.id, metadata=channel.metadata or None, kind="channel"
            )
            return await self.post(
                messages,
                channel=target.id,
                collection=home.id,
                link=how.get("link", True),
                progress=how.get("progress"),
            )

        report = await take_in(read, put, how.get("progress"))
        if how.get("wait", False):
            await self._beside(RemoteDocuments).wait_until_embedded(
                collection=home.id, progress=how.get("progress")
            )
        return report


def _message_json(message: NewMessage) -> dict[str, Json]:
    told = period(message.at)
    return {
        "text": encoded(message.text),
        "key": encoded(message.key),
        "author": encoded(message.author),
        "at": None if told is None else told.start.isoformat(),
        "reply_to": encoded(message.reply_to),
        "thread": encoded(message.thread),
        "role": encoded(message.role),
        "metadata": dict(metadata_json(message.metadata)),
        "sequence": message.sequence,
    }
