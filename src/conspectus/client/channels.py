"""Channels of a server."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from conspectus.client.collections import RemoteCollections
from conspectus.client.documents import RemoteDocuments
from conspectus.client.operations import derive_client, request_for
from conspectus.client.people import RemoteAccess
from conspectus.client.transport import RemoteService
from conspectus.engine.channels import ChannelService
from conspectus.errors import Conflict, NotFound
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.messages import (
    MessageImportOptions,
    import_channels,
    name_upload_in_errors,
    open_upload,
    states_threads,
)
from conspectus.model.access import Principal
from conspectus.model.channels import ArchiveKind, ChannelArchive, ImportReport, NewMessage
from conspectus.model.files import expand_home
from conspectus.model.jobs import Upload
from conspectus.model.records import Written

MAX_DELETED = 1_000
"""Maximum number of messages that are deleted by one request."""


@derive_client
class RemoteChannels(RemoteService, ChannelService):
    """Channels of a server."""

    async def add_messages(
        self,
        messages: NewMessage | Iterable[NewMessage],
        *,
        channel: str,
        collection: str = "default",
        **options: Unpack[MessageImportOptions],
    ) -> list[Written]:
        all_messages = [messages] if isinstance(messages, NewMessage) else messages
        progress = options.get("progress")
        target = await self._open_sibling(RemoteCollections).get_or_create_source(
            channel, collection=collection, kind="channel"
        )
        where = {"channel": target.id, "collection": target.collection, "link": options.get("link", True)}
        requests = (
            request_for(ChannelService.add_messages, messages=batch, **where)
            for batch in batches(all_messages)
        )
        written = await self._in_batches(Written, requests, "writing", progress)
        if options.get("wait", False):
            await self._open_sibling(RemoteDocuments).wait_until_embedded(
                collection=target.collection, progress=progress
            )
        return written

    async def import_archive(
        self,
        archive: str | Path | Upload,
        *,
        kind: ArchiveKind | None = None,
        collection: str = "default",
        grant_members: bool = False,
        **options: Unpack[MessageImportOptions],
    ) -> ImportReport:
        target_collection = await self._open_sibling(RemoteCollections).get_or_create(collection)
        with TemporaryDirectory() as folder:
            path = open_upload(archive, Path(folder)) if isinstance(archive, Upload) else Path(archive)
            with name_upload_in_errors(archive):
                read = await asyncio.to_thread(self._archives.read, expand_home(path), kind=kind)

        async def put(channel: ChannelArchive, messages: Iterable[NewMessage]) -> Sequence[Written]:
            target = await self._open_sibling(RemoteCollections).get_or_create_source(
                channel.name,
                collection=target_collection.id,
                metadata=channel.metadata or None,
                kind="channel",
            )
            return await self.add_messages(
                messages,
                channel=target.id,
                collection=target_collection.id,
                link=link,
                progress=options.get("progress"),
            )

        async def delete(channel: ChannelArchive) -> int:
            return await self._delete_messages(channel, target_collection.id)

        link = options.get("link", True) and not states_threads(read)
        grant = partial(self._grant_to_member, target_collection.id) if grant_members else None
        report = await import_channels(read, put, delete, grant=grant, progress=options.get("progress"))
        if options.get("wait", False):
            await self._open_sibling(RemoteDocuments).wait_until_embedded(
                collection=target_collection.id, progress=options.get("progress")
            )
        return report

    async def _grant_to_member(self, collection: str, channel: ChannelArchive, name: str) -> bool:
        """Let an account read a channel. Returns whether it exists; the owner can read it already."""
        access = self._open_sibling(RemoteAccess)
        try:
            await access.grant(collection, Principal("user", name), "viewer", source=channel.name)
        except Conflict:
            return True
        except NotFound:
            return False
        return True

    async def _delete_messages(self, channel: ChannelArchive, collection: str) -> int:
        """Delete the stored messages that were deleted on the platform, and return their number."""
        try:
            source = await self._open_sibling(RemoteCollections).get_source(
                channel.name, collection=collection
            )
        except NotFound:
            return 0
        documents, deleted = self._open_sibling(RemoteDocuments), 0
        for start in range(0, len(channel.deleted), MAX_DELETED):
            keys = channel.deleted[start : start + MAX_DELETED]
            deleted += (await documents.delete([message_id(source.id, key) for key in keys])).documents
        return deleted
