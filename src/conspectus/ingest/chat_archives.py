"""Exports of chat platforms, channel by channel."""

import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict

from conspectus.errors import UnreadableFile
from conspectus.model.channels import ChannelArchive, ChatArchive, ImportReport, NewMessage
from conspectus.model.jobs import Upload
from conspectus.model.records import Written
from conspectus.ports import Progress
from conspectus.text.clean import clean
from conspectus.text.times import parse_instant

LONGEST_FILE_NAME = 200
"""In bytes; file systems take 255."""


class MessageImportOptions(TypedDict, total=False):
    """How messages are stored.

    `link` (true unless given) finds what a message seems to answer where nobody says; `wait` returns when
    all are found by meaning too; `progress` is told how far it is.
    """

    link: bool
    wait: bool
    progress: Progress | None


async def take_in(
    archive: ChatArchive,
    put: Callable[[ChannelArchive, Iterable[NewMessage]], Awaitable[Sequence[Written]]],
    progress: Progress | None = None,
) -> ImportReport:
    """Store every channel with `put`, and say what that did."""
    outcomes: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    for number, channel in enumerate(archive.channels):
        if progress is not None:
            progress("channels", number, len(archive.channels))
        written = await put(channel, in_order(channel.messages))
        outcomes.update(each.outcome for each in written)
        sizes[channel.name] = len(written)
    private = sum(1 for each in archive.channels if each.metadata.get("private"))
    told = (f"{private} private channels: everyone who sees the collection sees them",) if private else ()
    return ImportReport(
        kind=archive.kind,
        channels=sizes,
        added=outcomes["added"],
        replaced=outcomes["replaced"] + outcomes["updated"],
        unchanged=outcomes["unchanged"],
        notices=(*archive.notices, *told),
    )


def handed_in(upload: Upload, folder: Path) -> Path:
    """The file of an upload, in a folder, under the last part of its name, which tells what it is."""
    place = folder / _file_name(upload.name)
    if isinstance(upload.data, bytes):
        place.write_bytes(upload.data)
    else:
        shutil.copyfile(upload.data, place)
    return place


@contextmanager
def named(archive: str | Path | Upload) -> Iterator[None]:
    """What is wrong with an upload is said of the name that it came with, not of where it was put."""
    try:
        yield
    except UnreadableFile as fault:
        if not isinstance(archive, Upload):
            raise
        raise type(fault)(archive.name or "archive", fault.reason) from fault


def _file_name(name: str) -> str:
    """The end of a name, as every file system takes it."""
    last = clean(name).replace("\\", "/").rpartition("/")[2]
    printed = "".join(each for each in last if each.isprintable())
    cut = printed.encode()[-LONGEST_FILE_NAME:].decode(errors="ignore")
    return cut if cut.strip(". ") else "archive"


def in_order(messages: Sequence[NewMessage]) -> Iterator[NewMessage]:
    """The messages so that their times keep their order, or numbered where some have none.

    Of those that are of the same time, as in logs by the minute, each is a microsecond after the one before.
    """
    numbered = any(each.at is None for each in messages)
    seen: Counter[datetime] = Counter()
    for place, each in enumerate(messages):
        if numbered or each.at is None:
            yield replace(each, sequence=place)
            continue
        at = parse_instant(each.at)
        yield replace(each, at=at + timedelta(microseconds=seen[at]))
        seen[at] += 1
