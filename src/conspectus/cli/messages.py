"""messages: the messages of channels, threads, and context for a query in a channel."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from conspectus.cli.errors import NOTHING
from conspectus.cli.options import (
    Common,
    Instant,
    Limit,
    MaxTokens,
    MinSimilarity,
    PageLimit,
    Query,
    Wait,
    instant,
)
from conspectus.cli.output import cell, note, plain_table, progress, show
from conspectus.cli.search import print_window, require_shown
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.channels import (
    ANSWERS,
    ARCHIVE_KINDS,
    REPLY_TO,
    ArchiveKind,
    ChannelMessage,
    ChannelQuery,
    ImportReport,
    NewMessage,
)
from conspectus.model.records import Document

TEXT = 200
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name or id of a channel.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="Key of a message on its platform.")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a window may hold."""

    max_tokens: MaxTokens = 4_000
    related: Annotated[bool, typer.Option("--related", help="Include related channels.")] = False
    min_similarity: MinSimilarity = None
    at: Instant = None


def import_archive(
    path: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="Export: a file or a folder.")],
    common: Common,
    *,
    kind: Annotated[
        str | None, typer.Option(help="slack, discord, irc or jsonl (default: by content).")
    ] = None,
    infer_replies: Annotated[
        bool,
        typer.Option(
            "--infer-replies/--no-infer-replies", help="Infer replies if the platform has no threads."
        ),
    ] = True,
    wait: Wait = True,
) -> None:
    """Import messages from Slack, Discord, IRC or JSON Lines."""
    with opened(common, new=True) as session, progress() as bars:
        report = session.engine.channels.import_chat(
            path,
            kind=_kind(kind),
            collection=session.collection,
            link=infer_replies,
            wait=wait,
            progress=bars,
        )
    for notice in report.notices if not common.json else ():
        note(notice)
    show(report, _report_table(report), as_json=common.json)


def add(
    channel: Channel,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the message.")],
    common: Common,
    *,
    author: Annotated[str | None, typer.Option(help="Author.")] = None,
    key: Annotated[str | None, typer.Option(help="Key. A message with this key is replaced.")] = None,
    reply_to: Annotated[str | None, typer.Option(help="Key of the message it replies to.")] = None,
) -> None:
    """Add a message to a channel."""
    message = NewMessage(text, key=key, author=author, reply_to=reply_to)
    with opened(common, new=True) as session:
        [written] = session.engine.channels.post(
            message, channel=channel, collection=session.collection, wait=True
        )
    show(written, f"{written.outcome} {written.id}", as_json=common.json)


def list_messages(channel: Channel, common: Common, *, limit: PageLimit = 20) -> None:
    """List the latest messages of a channel, oldest first."""
    with opened(common) as session:
        said = session.engine.channels.latest(channel=channel, collection=session.collection, limit=limit)
    show(said, _said_table(said), as_json=common.json)
    if not said:
        raise typer.Exit(NOTHING)


def thread(channel: Channel, key: Key, common: Common, *, limit: Limit = 20) -> None:
    """Show the thread of a message."""
    with opened(common) as session:
        found = session.engine.channels.chain(_message(session, channel, key).id, limit=limit)
    show(found, _said_table(found.messages), as_json=common.json)
    if found.left_out and not common.json:
        note(f"{found.left_out} more messages in the thread; use --limit")


def delete(channel: Channel, key: Key, common: Common) -> None:
    """Delete a message. Replies to it stay."""
    with opened(common) as session:
        receipt = session.engine.documents.delete(_message(session, channel, key).id)
    show(receipt, f"deleted {receipt.documents} messages", as_json=common.json)


def context(channel: Channel, query: Query, common: Common, wanted: Wanted) -> None:
    """Print the context window for a query in a channel."""
    with opened(common) as session:
        question = ChannelQuery(
            query,
            channel,
            session.collection,
            at=instant(wanted.at),
            related=wanted.related,
            min_similarity=wanted.min_similarity,
        )
        window = session.engine.channels.window
        found = window(question, wanted.max_tokens)
        if found.window.outcome == "found":
            require_shown(
                wanted.max_tokens, lambda most: window(question, most).tokens > 0, shown=found.tokens > 0
            )
    print_window(found, found.window, as_json=common.json)
    if not common.json:
        for notice in found.window.notices:
            note(notice)
        note(f"from {', '.join(found.channels)}")
    if not found.messages:
        raise typer.Exit(NOTHING)


def _message(session: Session, channel: str, key: str) -> Document:
    return session.engine.documents.get_by_key(key, source=channel, collection=session.collection)


def _kind(name: str | None) -> ArchiveKind | None:
    for kind in ARCHIVE_KINDS:
        if kind == name:
            return kind
    if name is None:
        return None
    raise InvalidInput("kind", f"unknown kind {name!r}; expected one of: {', '.join(ARCHIVE_KINDS)}")


def _report_table(report: ImportReport) -> RenderableType:
    table = plain_table("channel", "messages")
    for name, messages in report.channels.items():
        table.add_row(cell(name), str(messages))
    counts = f"{report.added} added, {report.replaced} replaced, {report.unchanged} unchanged"
    return Group(table, counts)


def _said_table(said: list[ChannelMessage] | tuple[ChannelMessage, ...]) -> RenderableType:
    table = plain_table("time", "author", "key", "replies to", "text")
    for each in said:
        document = each.document
        when = f"{document.occurred.start:%Y-%m-%d %H:%M:%S}" if document.occurred else "-"
        answers = document.metadata.get(REPLY_TO) or document.metadata.get(ANSWERS) or ""
        author = cell(document.author or document.role or "")
        table.add_row(when, author, cell(document.key), cell(str(answers)), cell(each.text, limit=TEXT))
    return table
