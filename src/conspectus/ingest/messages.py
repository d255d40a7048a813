"""Messages and exports of chat platforms as documents: what each answers, and which thread it is in."""

import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, TypedDict
from uuid import uuid4

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile
from conspectus.ingest.document_fields import period
from conspectus.model.channels import (
    ANSWERS,
    ANSWERS_CONFIDENCE,
    REPLY_TO,
    ChannelArchive,
    ChatArchive,
    ImportReport,
    NewMessage,
)
from conspectus.model.jobs import Upload
from conspectus.model.parameters import Wait
from conspectus.model.records import Document, NewDocument, Period, StoredChunk, Written
from conspectus.ports import Progress
from conspectus.text.clean import clean
from conspectus.text.counts import format_count
from conspectus.text.replies import Linker, Utterance
from conspectus.text.times import parse_instant

TICK = timedelta(microseconds=1)
PLATFORMS_WITH_THREADS = frozenset({"slack", "discord"})
MAX_NAMED = 5
LINKS = frozenset({REPLY_TO, ANSWERS, ANSWERS_CONFIDENCE})


@dataclass(slots=True)
class Threading:
    """Finds the thread of each message of one channel, in the order in which they were written.

    What the platform says counts; where it says nothing, a message keeps the thread it was stored with, and
    a new one is given the thread of the message that `linker` takes it to answer (None: it begins its own).
    A message without a time is of `now`, or a microsecond after the one before it, unless it has a sequence.
    """

    linker: Linker | None
    now: datetime
    _threads: dict[str, str] = field(default_factory=dict)

    def _recall(self, latest: Sequence[StoredChunk]) -> None:
        """Learn the earlier messages of the channel, given newest first."""
        for row in reversed(latest):
            document = row.document
            answered = document.metadata.get(REPLY_TO) or document.metadata.get(ANSWERS)
            self._threads[document.key] = document.thread or document.key
            self._place_message(
                document.key, _as_utterance(document, row.chunk.text), str(answered or document.key)
            )

    def guesses(self, batch: Sequence[NewMessage], stored: Mapping[str, Document]) -> bool:
        """Whether the message that one of a batch answers must be inferred."""
        threaded = (message.reply_to or message.thread or _key(message.key) in stored for message in batch)
        return self.linker is not None and not all(threaded)

    def learn_threads(self, batch: Sequence[NewMessage], earlier: Sequence[StoredChunk]) -> None:
        """Infer nothing in a channel in which messages name those that they answer, or their threads."""
        named = any(message.reply_to or message.thread for message in batch)
        if named or any(_states_thread(row.document) for row in earlier):
            self.linker = None

    def documents(
        self,
        batch: Sequence[NewMessage],
        stored: Mapping[str, Document],
        messages: Sequence[StoredChunk] = (),
    ) -> list[NewDocument]:
        """The documents of a batch.

        `stored` are the existing messages with its keys and of those it answers; `said` are the messages
        before the first batch, newest first.
        """
        self._recall(messages)
        self._threads.update({key: message.thread or key for key, message in stored.items()})
        before: dict[str, Document | NewDocument] = dict(stored)
        documents: list[NewDocument] = []
        for message in batch:
            key = _key(message.key) or str(uuid4())
            documents.append(self._document(message, key, before.get(key)))
            before[key] = documents[-1]
        return documents

    def _document(self, new: NewMessage, key: str, before: Document | NewDocument | None) -> NewDocument:
        occurred = self._find_time(new, before)
        merged = new if before is None else _complete_edit(new, before)
        messages = Utterance(
            merged.author, merged.text, occurred.start if occurred else None, merged.role == "system"
        )
        thread, answers = self._assign_thread(merged, key, before, messages)
        self._threads[key] = thread
        sure = None if answers is None else self._link_confidence(key, before)
        links = {REPLY_TO: merged.reply_to, ANSWERS: answers, ANSWERS_CONFIDENCE: sure}
        return NewDocument(
            text=merged.text,
            kind="message",
            key=key,
            author=merged.author,
            role=merged.role,
            occurred=occurred,
            sequence=merged.sequence,
            thread=thread,
            metadata={**merged.metadata, **{name: value for name, value in links.items() if value}},
            origin=merged.origin,
            trust=merged.trust,
        )

    def _assign_thread(
        self, merged: NewMessage, key: str, before: Document | NewDocument | None, messages: Utterance
    ) -> tuple[str, str | None]:
        """The thread of a message, and the key of the one that it seems to answer, if none is given."""
        thread, answered = _key(merged.thread), _key(merged.reply_to)
        if thread or answered:
            if not thread or thread == key:
                self._place_message(key, messages, answered or key)
            return key if thread == key else self._resolve_thread(thread or answered or key, key), None
        if before is not None:
            seems = before.metadata.get(ANSWERS)
            self._place_message(key, messages, str(seems or key))
            if seems is None:
                return before.thread or key, None
            return self._threads.get(str(seems)) or before.thread or key, str(seems)
        if key in self._threads:
            self._place_message(key, messages, key)
            return self._threads[key], None
        answers = None if self.linker is None else self.linker.link(key, messages)
        if answers is None:
            return (key, None)
        return (self._threads.get(answers, answers), answers)

    def _link_confidence(self, key: str, before: Document | NewDocument | None) -> object:
        """The probability of an inferred link; an edit keeps it."""
        if before is not None:
            return before.metadata.get(ANSWERS_CONFIDENCE)
        confidence = None if self.linker is None else self.linker.confidence_of(key)
        return None if confidence is None else round(confidence, 3)

    def _resolve_thread(self, name: str, key: str) -> str:
        """The thread of the message `name`; if it is unknown, that of `key`, or one of that name."""
        if name not in self._threads:
            self._threads[name] = self._threads.get(key, name)
        return self._threads[name]

    def _place_message(self, key: str, messages: Utterance, answers: str) -> None:
        """Known threads need no guess; a message that answers itself begins a thread."""
        if self.linker is not None:
            self.linker.link(key, messages, answers=answers)

    def _find_time(self, new: NewMessage, before: Document | NewDocument | None) -> Period | None:
        if new.at is not None:
            return period(new.at, field="at")
        if before is not None:
            return period(before.occurred)
        if new.sequence is not None:
            return None
        self.now += TICK
        return period(self.now - TICK)


def _states_thread(document: Document) -> bool:
    """Whether the platform says what a message answers, or in which thread it is."""
    is_inferred = ANSWERS in document.metadata
    return REPLY_TO in document.metadata or (not is_inferred and document.thread not in {None, document.key})


def _key(name: str | None) -> str | None:
    """As it is stored; what is empty names nothing."""
    return clean(name) if name else None


def _complete_edit(new: NewMessage, before: Document | NewDocument) -> NewMessage:
    """An edit, with what it does not tell as it was."""
    answered = before.metadata.get(REPLY_TO)
    plain = {name: value for name, value in before.metadata.items() if name not in LINKS}
    dated = new.sequence is None and new.at is None
    return replace(
        new,
        author=before.author if new.author is None else new.author,
        role=before.role if new.role is None else new.role,
        reply_to=new.reply_to or (None if answered is None else str(answered)),
        metadata=new.metadata or plain,
        sequence=before.sequence if dated else new.sequence,
    )


def _as_utterance(document: Document, text: str) -> Utterance:
    at = document.occurred.start if document.occurred else None
    return Utterance(document.author, text, at, document.role == "system")


MAX_FILE_NAME_LENGTH = 200
"""In bytes; file systems take 255."""


GrantMembers = Annotated[
    bool, "Give members of private channels the role viewer on them, if their e-mail or handle is an account."
]


class MessageImportOptions(TypedDict, total=False):
    """How messages are stored.

    `link` (default true) infers the message that a message answers, in channels and archives where no message
    names one; `wait` returns when all are embedded; `progress` is called with the progress.
    """

    link: Annotated[bool, "Infer the messages that are answered, where no message names one."]
    wait: Wait
    progress: Progress | None


async def import_channels(
    archive: ChatArchive,
    put: Callable[[ChannelArchive, Iterable[NewMessage]], Awaitable[Sequence[Written]]],
    delete: Callable[[ChannelArchive], Awaitable[int]],
    *,
    grant: Callable[[ChannelArchive, str], Awaitable[bool]] | None,
    progress: Progress | None,
) -> ImportReport:
    """Store every channel with `put` and `delete` the messages that are gone, and say what that did.

    With `grant`, members of private channels get a role, as `_grant_to_members` says.
    """
    outcomes: Counter[str] = Counter()
    deleted = 0
    sizes: dict[str, int] = {}
    for number, channel in enumerate(archive.channels):
        if progress is not None:
            progress("channels", number, len(archive.channels))
        deleted += await delete(channel) if channel.deleted else 0
        if not channel.messages:
            continue
        written = await put(channel, in_order(channel.messages))
        outcomes.update(message.outcome for message in written)
        sizes[channel.name] = len(written)
    private = sum(1 for channel in archive.channels if channel.metadata.get("private"))
    private_notice = (
        (f"everyone who sees the collection sees {format_count(private, 'private channel')} in it",)
        if private
        else ()
    )
    members_notice = () if grant is None else await _grant_to_members(archive, grant)
    return ImportReport(
        kind=archive.kind,
        channels=sizes,
        added=outcomes["added"],
        replaced=outcomes["replaced"] + outcomes["updated"],
        unchanged=outcomes["unchanged"],
        notices=(*archive.notices, *private_notice, *members_notice),
        deleted=deleted,
    )


async def _grant_to_members(
    archive: ChatArchive, grant: Callable[[ChannelArchive, str], Awaitable[bool]]
) -> tuple[str, ...]:
    """Give members of private channels a role with `grant`, which says whether an account has that name.

    Returns a notice with their number, and the members without an account.
    """
    private = [channel for channel in archive.channels if channel.metadata.get("private")]
    members = [(channel, names) for channel in private for names in channel.members]
    granted, missing = 0, dict[str, None]()
    for channel, names in members:
        has_account = False
        for name in names:
            has_account = has_account or await grant(channel, name)
        granted += has_account
        missing |= {} if has_account else {names[-1]: None}
    unknown = f"; without an account: {', '.join(islice(missing, MAX_NAMED))}" if missing else ""
    more = ", …" if len(missing) > MAX_NAMED else ""
    return (f"{format_count(granted, 'member')} of private channels may read them{unknown}{more}",)


def states_threads(archive: ChatArchive) -> bool:
    """Whether the platform or the archive says which messages are answered: then none is inferred."""
    if archive.kind in PLATFORMS_WITH_THREADS:
        return True
    return any(
        message.reply_to or message.thread for channel in archive.channels for message in channel.messages
    )


def open_upload(upload: Upload, folder: Path) -> Path:
    """The file of an upload, in a folder, under the last part of its name, which tells what it is."""
    last = clean(upload.name).replace("\\", "/").rpartition("/")[2]
    printed = "".join(character for character in last if character.isprintable())
    cut = printed.encode()[-MAX_FILE_NAME_LENGTH:].decode(errors="ignore")
    path = folder / (cut if cut.strip(". ") else "archive")
    if isinstance(upload.data, bytes):
        path.write_bytes(upload.data)
    else:
        shutil.copyfile(upload.data, path)
    return path


@contextmanager
def name_upload_in_errors(archive: str | Path | Upload) -> Iterator[None]:
    """Errors of an upload name its original file name, not the temporary path."""
    try:
        yield
    except UnreadableFile as fault:
        if not isinstance(archive, Upload):
            raise
        raise type(fault)(archive.name or "archive", fault.reason) from fault


def in_order(messages: Sequence[NewMessage]) -> Iterator[NewMessage]:
    """The messages so that their times keep their order, or numbered where some have none.

    Of those that are of the same time, as in logs by the minute, each is a microsecond after the one before.
    """
    numbered = any(message.at is None for message in messages)
    seen: Counter[datetime] = Counter()
    for position, message in enumerate(messages):
        if numbered or message.at is None:
            yield replace(message, sequence=position)
            continue
        at = parse_instant(message.at)
        yield replace(message, at=at + timedelta(microseconds=seen[at]))
        seen[at] += 1
