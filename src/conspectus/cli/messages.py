"""messages: the messages of channels, threads, and context for a query in a channel."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument, option
from conspectus.cli.options import (
    Instant,
    MaxTokens,
    MinConfidence,
    MinSimilarity,
    MinTrustOption,
    Query,
    Wait,
    instant,
)
from conspectus.cli.output import cell, moment, progress, rows_table
from conspectus.cli.search import print_window, require_nonempty
from conspectus.cli.session import NewSession, Opening, Session
from conspectus.deferred import dataclass
from conspectus.ingest.messages import MessageImportOptions
from conspectus.model.channels import (
    ANSWERS,
    REPLY_TO,
    ArchiveKind,
    ChannelMessage,
    ChannelQuery,
)
from conspectus.model.parameters import ChannelName, DocumentKey
from conspectus.model.records import Document
from conspectus.text.counts import format_count

MAX_TEXT_LENGTH = 200
Channel = Annotated[str, argument(ChannelName, metavar="CHANNEL")]


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The limits of a context window."""

    max_tokens: MaxTokens = 4_000
    thread: Annotated[str | None, option(ChannelQuery, "thread", "--thread")] = None
    related: Annotated[bool, option(ChannelQuery, "related", "--related")] = False
    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None
    at: Instant = None


def import_archive(
    path: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="Export: a file or a folder.")],
    session: NewSession,
    *,
    kind: Annotated[
        ArchiveKind | None, typer.Option(help="Form of the export (default: by content).")
    ] = None,
    infer_replies: Annotated[
        bool,
        option(MessageImportOptions, "link", "--infer-replies/--no-infer-replies"),
    ] = True,
    grant_members: Annotated[
        bool,
        option("engine.channels:ChannelService.import_archive", "grant_members", "--grant-members"),
    ] = False,
    wait: Wait = True,
) -> None:
    """Import messages from Slack, Discord, IRC or JSON Lines."""
    with progress() as bars:
        report = session.engine.channels.import_archive(
            path,
            kind=kind,
            collection=session.collection,
            link=infer_replies,
            grant_members=grant_members,
            wait=wait,
            progress=bars,
        )
    session.note(*report.notices)
    counts = f"{report.added} added, {report.replaced} replaced, {report.unchanged} unchanged"
    channels = ((name, str(messages)) for name, messages in report.channels.items())
    session.show(report, Group(rows_table(("channel", "messages"), channels), counts))


def thread(
    channel: Channel,
    key: Annotated[str, argument(DocumentKey, metavar="KEY")],
    session: Session,
    *,
    limit: Annotated[
        int, option("engine.channels:ChannelService.get_reply_chain", "limit", "--limit", "-n")
    ] = 20,
) -> None:
    """Show the thread of a message."""
    message = session.engine.documents.get_by_key(key, source=channel, collection=session.collection)
    chain = session.engine.channels.get_reply_chain(message.id, limit=limit)
    session.show(chain, _messages_table(chain.messages))
    if chain.left_out:
        session.note(f"{format_count(chain.left_out, 'more message')} in the thread; use --limit")


def context(channel: Channel, query: Query, session: Session, limits: WindowLimits) -> None:
    """Print the context window for a query in a channel."""
    window = partial(
        session.engine.channels.window,
        query,
        channel=channel,
        collection=session.collection,
        thread=limits.thread,
        at=instant(limits.at),
        related=limits.related,
        min_similarity=limits.min_similarity,
        min_confidence=limits.min_confidence,
        min_trust=limits.min_trust,
    )
    channel_window = window(limits.max_tokens)
    if channel_window.window.outcome == "found":
        require_nonempty(
            limits.max_tokens, lambda maximum: window(maximum).tokens > 0, has_text=channel_window.tokens > 0
        )
    print_window(session, channel_window, channel_window.window)
    session.note(*channel_window.window.notices, f"from {', '.join(channel_window.channels)}")
    if not channel_window.messages:
        session.end_with_nothing()


def _format_inferred_reply(document: Document) -> str | None:
    """Return the key of the message that a message seems to answer, marked as a guess."""
    answered = document.metadata.get(ANSWERS)
    return None if answered is None else f"{answered} (inferred)"


def _messages_table(messages: Iterable[ChannelMessage]) -> RenderableType:
    rows = (
        (
            moment(document.occurred), document.author or document.role,
            document.key, document.metadata.get(REPLY_TO) or _format_inferred_reply(document),
            cell(message.text, limit=MAX_TEXT_LENGTH),
        )
        for message in messages
        for document in [message.document]
    )  # fmt: skip
    return rows_table(("time", "author", "key", "replies to", "text"), rows)


def _show_messages(session: Session, messages: Sequence[ChannelMessage], _: Arguments) -> None:
    session.show(messages, _messages_table(messages), matches=messages)


MESSAGES_COMMANDS: Final = {
    "import": import_archive,
    "add": Command(
        "channels:ChannelService.add_messages", "Add a message to a channel.", "{result.outcome} {result.id}",
        element="messages", arguments={"channel": "CHANNEL", "text": "TEXT"}, only="author key reply_to",
        fixed={"wait": True}, opening=Opening(new=True),
    ),
    "list": Command(
        "channels:ChannelService.list_messages", "List the latest messages of a channel, oldest first.",
        only="limit", defaults={"limit": 20}, show=_show_messages,
    ),
    "thread": thread, "context": context,
    "delete": Command(
        "channels:DocumentService.delete_by_key", "Delete a message. Replies to it stay.",
        "messages deleted: {result.documents}", arguments={"source": "CHANNEL", "key": "KEY"}, only="",
    ),
}  # fmt: skip
