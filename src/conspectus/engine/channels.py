"""Channels: live and imported messages, and searches in a channel."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Unpack

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import among, require_scope
from conspectus.chat.vague_prompts import names_nothing
from conspectus.engine.access import AccessService
from conspectus.engine.context import EngineContext
from conspectus.engine.search import SearchService
from conspectus.engine.service import Service
from conspectus.errors import Conflict, NotFound, PermissionDenied, as_field
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.document_fields import message_id, period
from conspectus.ingest.messages import (
    GrantMembers,
    MessageImportOptions,
    Threading,
    import_channels,
    name_upload_in_errors,
    open_upload,
    states_threads,
)
from conspectus.model.access import Principal
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.channels import (
    ANSWERS,
    ArchiveKind,
    ChannelArchive,
    ChannelMessage,
    ChannelQuery,
    ChannelQueryOptions,
    ChannelWindow,
    ChannelWindowOptions,
    ImportReport,
    NewMessage,
    ReplyChain,
    WindowMessage,
)
from conspectus.model.files import expand_home
from conspectus.model.filter import And, Eq, Filter, Not, document_row, matches, with_min_trust
from conspectus.model.ids import EXAMPLE_ID, SourceId
from conspectus.model.jobs import Upload
from conspectus.model.parameters import (
    MAX_LIST,
    ChannelName,
    CollectionName,
    DocumentIdentifier,
    PageLimit,
    QueryText,
)
from conspectus.model.query import DEFAULT_MIN_SIMILARITY, Query, QueryContext, WindowTokens
from conspectus.model.records import Source, StoredChunk, Written
from conspectus.model.results import ContextWindow, Hit
from conspectus.retrieval.chains import chain_of
from conspectus.retrieval.profiles import profile_by_name
from conspectus.text.counts import format_count
from conspectus.text.replies import Linker
from conspectus.window.build import window_form

MAX_EARLIER_MESSAGES = 100
"""Number of earlier messages among which the message is searched that a new one replies to."""
MAX_EARLIER_MESSAGES_FOR_ONE = 30
"""Number of stored messages read for a single new message; reading more takes too long."""
MAX_THREAD_AGE = timedelta(hours=1)
"""Maximum age of the last message of a thread that a query that names nothing is about."""
MESSAGES = And((Eq("kind", "message"), Not(Eq("role", "system"))))
"""Messages of people and programs. Notices such as "joined the channel" answer no query."""
PASSAGE_SEPARATOR = " … "
"""Separates the parts of a long message that a window has."""
MAX_RELATED_HITS = 50
"""Hits in other channels that decide which of these are related."""
MAX_RELATED_CHANNELS = 3
MIN_BEST_SCORE_SHARE = 0.6
"""A channel is related if its best hit has at least this fraction of the best score of all."""


class ChannelService(Service):
    """Channels: messages, threads and reply chains, and context windows for queries in a channel."""

    def __init__(self, context: EngineContext, search: SearchService) -> None:
        super().__init__(context)
        self._search = search

    async def add_messages(
        self,
        messages: Annotated[NewMessage | Iterable[NewMessage], Length(0, MAX_LIST), "Messages to write."],
        *,
        channel: ChannelName,
        collection: CollectionName = "default",
        **options: Unpack[MessageImportOptions],
    ) -> list[Written]:
        """Store messages in the order in which they were written; a message with a stored key is an edit.

        A channel is created if it is new. Messages are written in batches of at most 500, one transaction
        each. Raises InvalidInput or TooLarge; the batch at fault is not written.
        """
        with as_field("channel", was="source"):
            target, access = await self._writer.writable(channel, collection, kind="channel")
        embedder = await self._context.embedder(access.collection)
        new_messages = [messages] if isinstance(messages, NewMessage) else messages
        linker = Linker(memory=MAX_EARLIER_MESSAGES) if options.get("link", True) else None
        threading = Threading(linker, self._parts.clock())
        progress = options.get("progress")
        written: list[Written] = []
        for batch in batches(new_messages):
            # Stored messages matter that the batch edits, or that one of its messages refers to.
            keys = {
                key for message in batch for key in (message.key, message.reply_to, message.thread) if key
            }
            ids = [message_id(target.id, key) for key in sorted(keys)]
            stored = (
                {document.key: document for document in await self._authorized.inside(access, ids)}
                if ids
                else {}
            )
            guesses = not written and threading.guesses(batch, stored)
            earlier_messages = await self._earlier_messages(access, target, batch) if guesses else ()
            threading.learn_threads(batch, earlier_messages)
            documents = await asyncio.to_thread(threading.documents, batch, stored, earlier_messages)
            written += await self._context.write(documents, target)
            self._context.begin_embedding(access.collection, embedder)
            if progress is not None:
                progress("writing", len(written), 0)
        await self._context.embed_in(access, wait=options.get("wait", False), progress=progress)
        return written

    async def list_messages(
        self,
        channel: ChannelName,
        *,
        collection: CollectionName = "default",
        before: Annotated[str | None, "Id of a message; only those before it.", Example(EXAMPLE_ID)] = None,
        limit: PageLimit = 50,
    ) -> list[ChannelMessage]:
        """Return the newest messages of a channel, oldest first. Raises NotFound.

        Messages without a time come before all others, in the order of their sequence. With `before`, the id
        of a message, only those that come before it.
        """
        access = await self._authorized.collection(collection)
        source = await self._authorized.require_source(access, channel)
        rows = await self._authorized.latest(access, source, limit=limit, before=before)
        return await self._with_texts(rows[::-1])

    async def get_reply_chain(
        self,
        document: DocumentIdentifier,
        *,
        limit: Annotated[
            int, Range(1, "max_thread_messages"), "Maximum number of messages.", Example(10)
        ] = 20,
    ) -> ReplyChain:
        """Return the reply chain of a message: its ancestors and its replies. Raises NotFound."""
        message = (await self._authorized.document(document))[0]
        rows, total = await self._authorized.thread(message, limit=self._parts.settings.max_thread_chunks)
        members, root, left_out = chain_of(message, rows, limit=limit, total=total)
        return ReplyChain(message.id, root, tuple(await self._with_texts(members)), left_out)

    async def window(
        self,
        query: QueryText,
        max_tokens: WindowTokens = 4_000,
        *,
        channel: ChannelName,
        **options: Unpack[ChannelWindowOptions],
    ) -> ChannelWindow:
        """Build a context window for a query in a channel: messages with their reply chains, by thread.

        The options are the fields of ChannelQuery and WindowForm. A notice says how many messages the minimum
        similarity leaves out. Raises NotFound for a channel that cannot be read, or that does not have the
        member.
        """
        form, query_options = window_form(options, ChannelQueryOptions)
        channel_query = ChannelQuery(query, channel, **query_options)
        access = await self._authorized.collection(channel_query.collection)
        here = await self._authorized.require_source(access, channel)
        if not _is_member(here, channel_query.member):
            raise NotFound("source", channel)
        channels_by_id = {here.id: here}
        if channel_query.related:
            channels_by_id |= {
                source.id: source for source in await self._find_related_channels(channel_query, access, here)
            }
        assumed_thread = None
        if channel_query.thread is None and names_nothing(query):
            assumed_thread = await self._latest_thread(channel_query, access, here)
        window_query = Query(
            query,
            collection=access.collection.id,
            filter=_in_channel(list(channels_by_id.values())),
            min_similarity=_min_similarity_for(channel_query),
            min_confidence=channel_query.min_confidence,
            query_context=QueryContext(
                here.id,
                channel_query.thread or assumed_thread,
                channel_query.at,
                channel_query.profile,
            ),
            thread_messages=channel_query.thread_messages,
            min_trust=channel_query.min_trust,
        )
        window = await self._search.window(
            window_query, max_tokens, format=form.format, parts=form.parts, previous=form.previous
        )
        messages = await self._window_messages(window, access, channels_by_id)
        others = sorted({message.channel for message in messages} - {here.name})
        window = replace(window, notices=(*window.notices, *_channel_notices(window, assumed_thread)))
        return ChannelWindow(messages, window.tokens, (here.name, *others), window, assumed_thread)

    async def import_archive(
        self,
        archive: str | Path | Upload,
        *,
        kind: ArchiveKind | None = None,
        collection: CollectionName = "default",
        grant_members: GrantMembers = False,
        **options: Unpack[MessageImportOptions],
    ) -> ImportReport:
        """Import the export of a chat platform; each channel becomes a source with threads.

        Importing the same export twice has no effect; a newer export adds messages and updates edited ones.
        With `grant_members`, the members of private channels whose account has their e-mail address or handle
        as its name may read them. A path is a path of the machine that holds the store. Raises
        UnreadableFile, UnsupportedContent or TooLarge.
        """
        stored_collection = await self._writer.collection(collection)
        with TemporaryDirectory() as folder:
            path = await asyncio.to_thread(self._archive_path, archive, Path(folder))
            with name_upload_in_errors(archive):
                contents = await asyncio.to_thread(self._parts.make_archives().read, path, kind=kind)
        link = options.get("link", True) and not states_threads(contents)

        async def put(channel: ChannelArchive, messages: Iterable[NewMessage]) -> Sequence[Written]:
            target, _ = await self._writer.source(
                channel.name, stored_collection.id, channel.metadata or None, "channel"
            )
            return await self.add_messages(
                messages,
                channel=target.id,
                collection=stored_collection.id,
                link=link,
                progress=options.get("progress"),
            )

        async def delete(channel: ChannelArchive) -> int:
            return await self._delete_messages(channel, stored_collection.id)

        grant = partial(self._grant_to_member, stored_collection.id) if grant_members else None
        report = await import_channels(contents, put, delete, grant=grant, progress=options.get("progress"))
        await self._context.embed(
            stored_collection, wait=options.get("wait", False), progress=options.get("progress")
        )
        return report

    async def _grant_to_member(self, collection: str, channel: ChannelArchive, name: str) -> bool:
        """Let an account read a channel, and return whether the account exists."""
        try:
            await AccessService(self._context).grant(
                collection, Principal("user", name), "viewer", source=channel.name
            )
        except Conflict:
            # The owner of the collection can read the channel already.
            return True
        except NotFound:
            return False
        return True

    async def _delete_messages(self, channel: ChannelArchive, collection: str) -> int:
        """Delete the stored messages that were deleted on the platform, and return their number."""
        access, source = await self._authorized.find_with_source(collection, channel.name)
        if access is None or source is None:
            return 0
        require_scope(self._person, "write", "write")
        access.require("editor", "delete a message", source=source.id)
        ids = [message_id(source.id, key) for key in channel.deleted]
        stored = [document.id for document in await self._authorized.inside(access, ids)]
        return (await self._core.records.delete(stored, now=self._parts.clock())).documents

    def _archive_path(self, archive: str | Path | Upload, folder: Path) -> Path:
        """Return the readable archive. Only the owner account may give a path of this machine."""
        if isinstance(archive, Upload):
            return open_upload(archive, folder)
        if not self._person.owner:
            raise PermissionDenied("read files of the machine that holds the store", "its owner account")
        return expand_home(archive)

    async def _earlier_messages(
        self, access: CollectionAccess, channel: Source, batch: Sequence[NewMessage]
    ) -> Sequence[StoredChunk]:
        """Return the stored messages before the batch, newest first; none if the batch has no times."""
        first = batch[0]
        begins = period(first.at, field="at")
        if begins is None and first.sequence is not None:
            return ()
        until = self._parts.clock() if begins is None else begins.start
        maximum = MAX_EARLIER_MESSAGES_FOR_ONE if len(batch) == 1 else MAX_EARLIER_MESSAGES
        return await self._authorized.latest(access, channel, limit=maximum, until=until)

    async def _window_messages(
        self, window: ContextWindow, access: CollectionAccess, channels: Mapping[SourceId, Source]
    ) -> tuple[WindowMessage, ...]:
        """Return the messages that a window cites and that still exist."""
        spans: dict[str, list[tuple[int, int]]] = {}
        for citation in window.citations:
            spans.setdefault(citation.document, []).append((citation.start, citation.end))
        scores: dict[str, float] = {}
        for candidate in window.trace:
            scores.setdefault(candidate.document, candidate.score)
        documents = await self._authorized.inside(access, list(spans))
        texts = await self._authorized.texts(documents)
        return tuple(
            WindowMessage(
                **{field.name: getattr(document, field.name) for field in fields(document)},
                channel=channels[document.source].name,
                text=PASSAGE_SEPARATOR.join(
                    texts[document.id][start:end] for start, end in spans[document.id]
                ),
                score=scores[document.id],
            )
            for document in documents
            if document.id in texts
        )

    async def _latest_thread(self, query: ChannelQuery, access: CollectionAccess, here: Source) -> str | None:
        """Return the thread of the channel's last message, if that is at most an hour old."""
        at = query.at or self._parts.clock()
        rows = await self._authorized.latest(access, here, limit=MAX_EARLIER_MESSAGES_FOR_ONE, until=at)
        filter = with_min_trust(MESSAGES, query.min_trust)
        for row in rows:
            document = row.document
            is_recent = document.occurred is not None and document.occurred.start >= at - MAX_THREAD_AGE
            if is_recent and access.can_see_document(document) and matches(filter, document_row(document)):
                return document.thread
        return None

    async def _find_related_channels(
        self, query: ChannelQuery, access: CollectionAccess, here: Source
    ) -> list[Source]:
        """Return other channels of the member that the person may read and that have comparable hits."""
        all_channels = [
            channel for channel in await self._authorized.sources(access) if channel.kind == "channel"
        ]
        member_channels = [channel for channel in all_channels if _is_member(channel, query.member)]
        is_member_of_all = len(member_channels) == len(all_channels)
        retrieval = await self._search.retrieve(
            Query(
                query.query,
                collection=access.collection.id,
                filter=MESSAGES if is_member_of_all else _in_channel(member_channels),
                limit=MAX_RELATED_HITS,
                min_similarity=DEFAULT_MIN_SIMILARITY,
            )
        )
        related_ids = select_related(retrieval.hits, here.id)
        return [channel for channel in member_channels if channel.id in related_ids]

    async def _with_texts(self, rows: Sequence[StoredChunk]) -> list[ChannelMessage]:
        """Return messages with their texts, given their first chunks. Deleted ones are skipped."""
        longer = [row.document for row in rows if row.document.chunks > 1]
        texts = {row.document.id: row.chunk.text for row in rows if row.document.chunks == 1}
        if longer:
            texts |= await self._authorized.texts(longer)
        return [
            ChannelMessage(row.document, texts[row.document.id], ANSWERS in row.document.metadata)
            for row in rows
            if row.document.id in texts
        ]


def _min_similarity_for(query: ChannelQuery) -> float | None:
    """Return the minimum similarity of the options; None if the profile has its own."""
    profile_minimum = profile_by_name(query.profile).min_similarity
    return (
        DEFAULT_MIN_SIMILARITY
        if query.min_similarity is None and profile_minimum is None
        else query.min_similarity
    )


def _channel_notices(window: ContextWindow, assumed_thread: str | None) -> Iterator[str]:
    """Say which thread was assumed, and how many messages are below the minimum similarity."""
    if assumed_thread is not None:
        yield f"the query names nothing: the latest thread of the channel was taken, {assumed_thread}"
    included = {citation.document for citation in window.citations}
    below = {candidate.document for candidate in window.trace if candidate.status == "below_min_similarity"}
    left_out = len(below - included)
    if left_out:
        verb = "is" if left_out == 1 else "are"
        yield f"{format_count(left_out, 'message')} {verb} left out, below the minimum similarity"


def _in_channel(channels: Sequence[Source]) -> Filter:
    return And((MESSAGES, among(channel.id for channel in channels)))


def _is_member(channel: Source, member: str | None) -> bool:
    members = channel.metadata.get("members")
    return member is None or not isinstance(members, list) or member in members


def select_related(hits: Iterable[Hit], here: str) -> list[str]:
    """Return up to three sources other than `here` whose best scores come close to the best of all."""
    best_scores: dict[str, float] = {}
    for hit in hits:
        source = hit.document.source
        best_scores[source] = max(best_scores.get(source, 0.0), hit.score)
    min_score = MIN_BEST_SCORE_SHARE * max(best_scores.values(), default=0.0)
    related = [source for source, score in best_scores.items() if score >= min_score and source != here]
    related.sort(key=lambda source: (-best_scores[source], source))
    return related[:MAX_RELATED_CHANNELS]
