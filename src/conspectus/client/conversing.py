"""Channels of a server."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from conspectus.client.encode import budget_json, encoded, metadata_json
from conspectus.client.request import ask, get, path_of, work
from conspectus.client.work import Work
from conspectus.ingest.chat_archives import MessageImportOptions, handed_in, named, take_in
from conspectus.ingest.pipeline import batches
from conspectus.ingest.prepare import period
from conspectus.model.channels import (
    ArchiveKind,
    ChannelArchive,
    ChannelMessage,
    ChannelQuery,
    ChannelWindow,
    ImportReport,
    NewMessage,
    ReplyChain,
)
from conspectus.model.jobs import Upload
from conspectus.model.query import Budget
from conspectus.model.records import Document, Json, Written


class Conversing(Work):
    """What people and assistants say to each other."""

    async def post(
        self,
        messages: NewMessage | Iterable[NewMessage],
        *,
        channel: str,
        collection: str = "default",
        **how: Unpack[MessageImportOptions],
    ) -> list[Written]:
        """Store messages in the order in which they were written; a key that is stored already is an edit.

        A channel is made if it is new. Messages are sent in batches of at most 500, each a transaction.
        Raises InvalidInput or TooLarge; the batch at fault is not written.
        """
        given = [messages] if isinstance(messages, NewMessage) else messages
        progress = how.get("progress")
        target = await self.source(channel, collection=collection, kind="channel")
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
            await self.settle(collection=target.collection, progress=progress)
        return written

    async def find_document(self, key: str, *, source: str, collection: str = "default") -> Document:
        """The document of a key in a source, such as a message of a channel. Raises NotFound."""
        return await self._channel.one(
            Document, get("/lookup", key=key, source=source, collection=collection)
        )

    async def latest(
        self, *, channel: str, collection: str = "default", limit: int = 50
    ) -> list[ChannelMessage]:
        """What was said last in a channel, oldest first. Raises NotFound."""
        request = get("/messages", channel=channel, collection=collection, limit=limit)
        return list(await self._channel.several(ChannelMessage, request))

    async def chain(self, document: str, *, limit: int = 20) -> ReplyChain:
        """A message with what it answers, up to the root, and with what follows from it. Raises NotFound."""
        path = path_of("documents", ("document", document), "chain")
        return await self._channel.one(ReplyChain, get(path, limit=limit))

    async def channel_window(self, question: ChannelQuery, budget: int | Budget) -> ChannelWindow:
        """Context for a question asked in a channel: messages with their chains, in their threads.

        Raises NotFound for a channel that cannot be seen, or of which the member is none.
        """
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
        """Take in the export of a chat platform, of this machine: it is read here and its messages sent.

        Importing it again changes nothing; importing a newer one adds what is new and follows edits. Raises
        UnreadableFile, UnsupportedContent or TooLarge.
        """
        home = await self.collection(collection)
        with TemporaryDirectory() as folder:
            path = handed_in(archive, Path(folder)) if isinstance(archive, Upload) else Path(archive)
            with named(archive):
                read = await asyncio.to_thread(self._archives.read, path.expanduser(), kind=kind)

        async def put(channel: ChannelArchive, messages: Iterable[NewMessage]) -> Sequence[Written]:
            target = await self.source(
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
            await self.settle(collection=home.id, progress=how.get("progress"))
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
