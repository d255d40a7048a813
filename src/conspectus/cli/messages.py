"""messages: channels, what was said in them, and what a question in one needs."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from conspectus.cli.errors import NOTHING
from conspectus.cli.options import Common
from conspectus.cli.output import cell, dump, note, plain_table, progress, show, write
from conspectus.cli.search import require_shown
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
from conspectus.text.times import parse_instant

TEXT = 200
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name or id of a channel.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The platform's id of a message.")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be found, and how much of it."""

    tokens: Annotated[int, typer.Option(min=0, help="Most tokens, counted with o200k_base.")] = 4_000
    related: Annotated[
        bool, typer.Option("--related", help="Ask other channels about the same thing, too.")
    ] = False
    min_score: Annotated[float | None, typer.Option(help="Least raw similarity, 0 to 1.")] = None
    at: Annotated[str | None, typer.Option(help="When it is asked, as an ISO 8601 time with a zone.")] = None


def import_archive(
    path: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The export: a file or a folder.")],
    common: Common,
    *,
    kind: Annotated[
        str | None, typer.Option(help="slack, discord, irc or jsonl; without it the content tells.")
    ] = None,
    link: Annotated[
        bool, typer.Option("--link/--no-link", help="Find what messages answer where nobody says.")
    ] = True,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Return when all is found by meaning too.")
    ] = True,
) -> None:
    """Take in an export of Slack, Discord or IRC, or messages as JSON lines; again changes nothing."""
    with opened(common, new=True) as session, progress() as bars:
        report = session.engine.import_chat(
            path, kind=_kind(kind), collection=session.collection, link=link, wait=wait, progress=bars
        )
    for notice in report.notices if not common.json else ():
        note(notice)
    show(report, _report_table(report), as_json=common.json)


def send(
    channel: Channel,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is said.")],
    common: Common,
    *,
    author: Annotated[str | None, typer.Option(help="Who says it.")] = None,
    key: Annotated[str | None, typer.Option(help="Its id; one that is there already is changed.")] = None,
    reply_to: Annotated[str | None, typer.Option(help="The id of the message that it answers.")] = None,
) -> None:
    """Store one message; it is found at once by its words, and by its meaning when this returns."""
    message = NewMessage(text, key=key, author=author, reply_to=reply_to)
    with opened(common, new=True) as session:
        [written] = session.engine.post(message, channel=channel, collection=session.collection, wait=True)
    show(written, f"{written.outcome} {written.id}", as_json=common.json)


def latest(
    channel: Channel,
    common: Common,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most messages to show.")] = 20,
) -> None:
    """Show what was said last in a channel, oldest first."""
    with opened(common) as session:
        said = session.engine.latest(channel=channel, collection=session.collection, limit=limit)
    show(said, _said_table(said), as_json=common.json)
    if not said:
        raise typer.Exit(NOTHING)


def chain(
    channel: Channel,
    key: Key,
    common: Common,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Most messages to show.")] = 20,
) -> None:
    """Show a message with what it answers, up to the root, and with what follows from it."""
    with opened(common) as session:
        found = session.engine.chain(_message(session, channel, key).id, limit=limit)
    show(found, _said_table(found.messages), as_json=common.json)
    if found.left_out and not common.json:
        note(f"{found.left_out} more messages of the thread are not shown")


def delete(channel: Channel, key: Key, common: Common) -> None:
    """Delete a message; what others answered stays."""
    with opened(common) as session:
        receipt = session.engine.delete(_message(session, channel, key).id)
    show(receipt, f"deleted {receipt.documents} messages", as_json=common.json)


def context(
    channel: Channel,
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The question asked there.")],
    common: Common,
    wanted: Wanted,
) -> None:
    """Print the messages that matter to a question asked in a channel, in their threads."""
    with opened(common) as session:
        question = ChannelQuery(
            prompt,
            channel,
            session.collection,
            at=_instant(wanted.at),
            related=wanted.related,
            floor=wanted.min_score,
        )
        window = session.engine.channel_window
        found = window(question, wanted.tokens)
        if found.window.outcome == "found":
            require_shown(
                wanted.tokens, lambda most: window(question, most).tokens > 0, shown=found.tokens > 0
            )
    if common.json:
        dump(found)
    elif found.window.text:
        write(found.window.text)
    for notice in found.window.notices if not common.json else ():
        note(notice)
    if not common.json:
        note(f"{found.tokens} of {found.window.allowed} tokens, from {', '.join(found.channels)}")
    if not found.messages:
        raise typer.Exit(NOTHING)


def _message(session: Session, channel: str, key: str) -> Document:
    return session.engine.find_document(key, source=channel, collection=session.collection)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)


def _kind(name: str | None) -> ArchiveKind | None:
    for kind in ARCHIVE_KINDS:
        if kind == name:
            return kind
    if name is None:
        return None
    raise InvalidInput("kind", f"{name!r} is none; there are {', '.join(ARCHIVE_KINDS)}")


def _report_table(report: ImportReport) -> RenderableType:
    table = plain_table("channel", "messages")
    for name, messages in report.channels.items():
        table.add_row(cell(name), str(messages))
    counts = f"{report.added} added, {report.replaced} replaced, {report.unchanged} unchanged"
    return Group(table, counts)


def _said_table(said: list[ChannelMessage] | tuple[ChannelMessage, ...]) -> RenderableType:
    table = plain_table("time", "author", "key", "answers", "text")
    for each in said:
        document = each.document
        when = f"{document.occurred.start:%Y-%m-%d %H:%M:%S}" if document.occurred else "-"
        answers = document.metadata.get(REPLY_TO) or document.metadata.get(ANSWERS) or ""
        author = cell(document.author or document.role or "")
        table.add_row(when, author, cell(document.key), cell(str(answers)), cell(each.text, limit=TEXT))
    return table
