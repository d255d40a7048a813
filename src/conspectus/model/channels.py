"""What people and assistants say to each other in channels, and what comes back of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, TypedDict, get_args

from conspectus.model.checks import Checked
from conspectus.model.records import Document, Metadata
from conspectus.model.results import ContextWindow

ArchiveKind = Literal["slack", "discord", "irc", "jsonl"]
ARCHIVE_KINDS: tuple[ArchiveKind, ...] = get_args(ArchiveKind)

REPLY_TO = "reply_to"
"""Metadata of a message: the key of the one that it answers, as the platform says."""
ANSWERS = "answers"
"""Metadata of a message: the key of the one that it seems to answer, where the platform does not say."""


@dataclass(frozen=True, slots=True)
class NewMessage(Checked):
    """What somebody wrote in a channel.

    `key` is the platform's own name for it, unique in its channel: writing it again is an edit, which leaves
    as it was what it does not tell. `reply_to` is the key of the message it answers, `thread` the platform's
    name for the thread it is in. People have no `role`; programs are `bot`, models `assistant`, and what
    the platform itself says is `system`. `sequence` is its place in the channel where times do not order it;
    without both it is of now.
    """

    text: str
    key: str | None = None
    author: str | None = None
    at: datetime | str | float | None = None
    reply_to: str | None = None
    thread: str | None = None
    role: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class ChannelArchive:
    """One channel of an export: its name, what is known of it, and its messages, oldest first.

    `metadata` may have `topic`, `purpose`, `private` (bool) and `members` (names of authors).
    """

    name: str
    metadata: Metadata
    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class ChatArchive:
    """The channels of an export; `notices` say what was left out and why, with counts."""

    kind: ArchiveKind
    channels: tuple[ChannelArchive, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did: channels by name with the number of their messages, and how many were new."""

    kind: ArchiveKind
    channels: Mapping[str, int]
    added: int
    replaced: int
    unchanged: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """A stored message with its text."""

    document: Document
    text: str


@dataclass(frozen=True, slots=True)
class ReplyChain:
    """A message and what it takes to understand it, in the order of time.

    `root` and `message` are the documents' ids; `messages` holds at most as many as were asked for, the root
    and the message among them; `left_out` counts those of the thread that are not here.
    """

    message: str
    root: str
    messages: tuple[ChannelMessage, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ChannelQuery(Checked):
    """A query asked in a channel, in one of its threads or in none, `at` an instant (None: now).

    `related` also searches up to three other channels that you may read and that have as good hits. `member`
    limits the search to channels that name no members or have this author among them. `min_similarity` is by
    default that of the `profile`, else 0.25. `thread_messages` is the maximum number of messages of its
    thread that are added to a hit.
    """

    zoned: ClassVar = ("at",)
    query: str
    channel: str
    collection: str = "default"
    thread: str | None = None
    at: datetime | None = None
    profile: str = "default"
    related: bool = False
    member: str | None = None
    min_similarity: float | None = None
    thread_messages: int = 8


class ChannelQueryOptions(TypedDict, total=False):
    """The fields of a ChannelQuery besides `query` and `channel`, as keyword arguments."""

    collection: str
    thread: str | None
    at: datetime | None
    profile: str
    related: bool
    member: str | None
    min_similarity: float | None
    thread_messages: int


@dataclass(frozen=True, slots=True)
class ChannelWindow:
    """A context window for a query in a channel.

    `messages` are those included, in the order of the window; `tokens` is the size of the rendered window;
    `channels` are the names of the channels of its messages, the channel of the query first.
    """

    messages: tuple[Document, ...]
    tokens: int
    channels: tuple[str, ...]
    window: ContextWindow
