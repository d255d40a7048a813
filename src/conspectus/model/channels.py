"""Channels: messages, imports, reply chains, queries and results."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, ClassVar, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.checks import Checked
from conspectus.model.parameters import (
    AskedQuery,
    ChannelName,
    CollectionName,
    Key,
    Label,
    LowestTrust,
    MinConfidence,
    MinSimilarity,
    Name,
    QueryText,
    StoredId,
    StoredSource,
    StoredText,
    Text,
    ThreadMessages,
    WriterOrigin,
    WriterTrust,
)
from conspectus.model.query import WindowFormOptions
from conspectus.model.records import Document, Metadata
from conspectus.model.results import ContextWindow
from conspectus.model.trust import MinTrust

ArchiveKind = Literal["slack", "discord", "irc", "jsonl"]
ARCHIVE_KINDS: tuple[ArchiveKind, ...] = get_args(ArchiveKind)

REPLY_TO = "reply_to"
"""Metadata of a message: the key of the message it answers, as the platform says."""
ANSWERS = "answers"
"""Metadata of a message: the key of the message it seems to answer, if the platform does not say."""
ANSWERS_CONFIDENCE = "answers_confidence"
"""Metadata of a message: the probability (0 to 1) that it answers that message and no other."""


@dataclass(frozen=True, slots=True)
class NewMessage(Checked):
    """A message of a channel.

    `key` is the platform's id of the message, unique in its channel. Writing a key again is an edit; fields
    that are None keep their values. `reply_to` is the key of the message that it answers, and `thread` the
    platform's name of its thread. `role` is None for people, `bot` for programs, `assistant` for models and
    `system` for messages of the platform. `sequence` is its position in the channel if times do not order
    the messages. Without `at` and `sequence`, it gets the current time. `origin` and `trust` can lower its
    trust level.
    """

    text: Annotated[Text, "Text of the message.", Example("When does the backup run?")]
    key: Annotated[Key, "Id that the platform gives it.", Example("17")] | None = None
    author: Annotated[Label, "Name of the author.", Example("ann")] | None = None
    at: Annotated[datetime | str | float | None, "Time of the message."] = None
    reply_to: Annotated[Key, "Key of the message that it answers."] | None = None
    thread: Annotated[Key, "Name of its thread."] | None = None
    role: Annotated[Label, "Role of the author: bot, assistant, system; none: a person."] | None = None
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)
    sequence: Annotated[int | None, "Its position in the channel."] = None
    origin: WriterOrigin | None = None
    trust: WriterTrust | None = None


@dataclass(frozen=True, slots=True)
class ChannelArchive:
    """One channel of an export: its name, its metadata, and its messages, oldest first.

    `metadata` may have `topic`, `purpose`, `private` (bool) and `members` (names of authors). `deleted` are
    the keys of messages that were deleted on the platform, `members` the names by which the account of each
    member may be known: its e-mail address and its handle.
    """

    name: str
    metadata: Metadata
    messages: tuple[NewMessage, ...]
    deleted: tuple[str, ...] = ()
    members: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ChatArchive:
    """The channels of an export; `notices` say what was left out and why, with counts."""

    kind: ArchiveKind
    channels: tuple[ChannelArchive, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import: channels by name with the number of their messages, and counts of outcomes."""

    kind: ArchiveKind
    channels: Mapping[str, int]
    added: int
    replaced: int
    unchanged: int
    notices: tuple[str, ...] = ()
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """A stored message with its text; `inferred` means that the platform does not say what it answers."""

    document: Document
    text: StoredText
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class ReplyChain:
    """A message with its ancestors and replies, in the order of time.

    `root` and `message` are ids of documents; `messages` holds at most `limit` messages, the root and the
    message among them; `left_out` counts the other ones of the thread.
    """

    message: AskedQuery
    root: StoredId
    messages: tuple[ChannelMessage, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ChannelQuery(Checked):
    """A query asked in a channel, in one of its threads or in none, `at` an instant (None: now).

    `related` also searches up to three other channels that you may read and that have as good hits.
    `member` limits the search to channels that name no members or have this author among them.
    `min_similarity` is by default that of the `profile`, else 0.25; it does not apply to the messages of
    `thread`. Without `thread`, a query that names nothing ("Did that work?") takes the latest thread of the
    channel, if its last message is at most an hour old. `min_confidence` (0 to 1) is the lowest
    confidence of the hits. `thread_messages` is the maximum number of messages of its thread that are added
    to a hit. `min_trust` is the lowest level of a message.
    """

    zoned: ClassVar = ("at",)
    query: QueryText
    channel: ChannelName
    collection: CollectionName = "default"
    thread: Annotated[Name, "Thread of the query in its channel."] | None = None
    at: Annotated[datetime | None, "Time of the query; by default now."] = None
    profile: Annotated[Name, "Weights of the parts of a score: default or multiplicative."] = "default"
    related: Annotated[bool, "Also search other channels with as good hits."] = False
    member: Annotated[Name, "Only channels that this author may be in."] | None = None
    min_similarity: MinSimilarity | None = None
    min_confidence: MinConfidence = 0.0
    thread_messages: ThreadMessages = 8
    min_trust: LowestTrust | None = None


class ChannelQueryOptions(TypedDict, total=False):
    """The fields of a ChannelQuery besides `query` and `channel`, as keyword arguments."""

    collection: str
    thread: str | None
    at: datetime | None
    profile: str
    related: bool
    member: str | None
    min_similarity: float | None
    min_confidence: float
    thread_messages: int
    min_trust: MinTrust | None


class ChannelWindowOptions(ChannelQueryOptions, WindowFormOptions, total=False):
    """The options of a window of a ChannelQuery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMessage(Document):
    """A message of a window: its document, the `text` that the window has of it, and its `score`.

    Parts of a long message are joined by ` … `. `channel` is the name of its channel.
    """

    channel: StoredSource
    text: StoredText
    score: Annotated[float, Example(0.82)]


@dataclass(frozen=True, slots=True)
class ChannelWindow:
    """A context window for a query in a channel.

    `messages` are those included, in the order of the window; `tokens` is the size of the rendered window;
    `channels` are the names of the channels of its messages, the channel of the query first. `assumed_thread`
    is the channel's latest thread, if it was taken because the query names nothing.
    """

    messages: tuple[WindowMessage, ...]
    tokens: int
    channels: tuple[str, ...]
    window: ContextWindow
    assumed_thread: str | None = None
