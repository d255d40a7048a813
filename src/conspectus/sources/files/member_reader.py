"""Files inside files: members of archives, messages of mailboxes and attachments, each read by its reader."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.records import NewDocument
from conspectus.ports import ParsedFile, ParsedMember
from conspectus.settings import Settings
from conspectus.sources.files.extract import Extract, Member
from conspectus.sources.files.parsers import CONTAINER_TYPES, MAIL_TYPES, documents_of_extract

Parse: TypeAlias = Callable[[bytes, str, str, str | None], tuple[ParsedFile, Extract | None]]
"""Reads a file alone, from its bytes, name, path and encoding."""


@dataclass(frozen=True, slots=True)
class MemberFile:
    """A file in memory: its name in the folder, its path on the machine, and how deep it is inside others.

    `extract` is what was read of it already.
    """

    name: str
    path: str
    data: bytes
    depth: int = 0
    extract: Extract | None = None

    def inside(self, member: Member) -> "MemberFile":
        """Return a file inside this one."""
        name, path = (f"{outer}/{member.name}" for outer in (self.name, self.path))
        return MemberFile(name, path, member.data, self.depth + 1, member.extract)


@dataclass(slots=True)
class MemberReader:
    """Reads one file with all that is inside it; all of that together is within the limits of one archive."""

    limits: Settings
    parse: Parse
    _members: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)

    def read(self, file: MemberFile, *, charset: str | None = None) -> ParsedFile:
        """Return the documents of a file and of those inside it. Raises UnreadableFile or TooLarge."""
        extract = file.extract
        if extract is None:
            parsed, extract = self.parse(file.data, file.name, file.path, charset)
        else:
            documents, notice = documents_of_extract(extract, name=file.name, path=file.path)
            parsed = ParsedFile(documents, notice=notice)
        if extract is None or extract.media_type not in CONTAINER_TYPES:
            return parsed
        self._count(file.name, extract.members)
        return replace(parsed, members=tuple(self._read_members(file, extract)), may_have_members=True)

    def _count(self, name: str, members: Sequence[Member]) -> None:
        limits = self.limits
        count, size = self._members + len(members), self._bytes + sum(len(one.data) for one in members)
        if count > limits.max_archive_members:
            raise TooLarge(
                f"{name}, with all inside,", size=count, limit=limits.max_archive_members, unit="files"
            )
        if size > limits.max_unpacked_bytes:
            raise TooLarge(f"{name}, unpacked,", size=size, limit=limits.max_unpacked_bytes)
        self._members, self._bytes = count, size

    def _read_members(self, file: MemberFile, extract: Extract) -> Iterator[ParsedMember]:
        for member in extract.members:
            inner = file.inside(member)
            try:
                parsed = self._read_member(inner, member)
            except ConspectusError as fault:
                yield ParsedMember(inner.name, fault=fault)
                continue
            members = parsed.members
            if extract.media_type in MAIL_TYPES:
                documents = tuple(_as_attachment(document, extract) for document in parsed.documents)
                parsed = _with_parent(replace(parsed, documents=documents), file.name)
                members = tuple(
                    replace(member, file=member.file and _with_parent(member.file, file.name))
                    for member in members
                )
            subtitles = inner.data if parsed.has_captions else None
            yield ParsedMember(inner.name, replace(parsed, members=()), subtitles=subtitles)
            yield from members

    def _read_member(self, file: MemberFile, member: Member) -> ParsedFile:
        if member.skipped:
            raise UnsupportedContent(file.name, member.skipped)
        if member.refused:
            raise UnreadableFile(file.name, member.refused)
        if file.depth > self.limits.max_archive_depth:
            raise UnsupportedContent(file.name, f"is inside more than {self.limits.max_archive_depth} files")
        if len(file.data) > self.limits.max_file_bytes:
            raise TooLarge(file.name, size=len(file.data), limit=self.limits.max_file_bytes)
        return self.read(file)


def _with_parent(file: ParsedFile, message: str) -> ParsedFile:
    """Return a file whose documents belong to a message, unless they belong to one inside it."""
    documents = (replace(document, parent=document.parent or message) for document in file.documents)
    return replace(file, documents=tuple(documents))


def _as_attachment(document: NewDocument, message: Extract) -> NewDocument:
    """Return a document with the time of the message that brought it, and what leads to that message."""
    facts: Mapping[str, object] = {
        name: fact
        for name, fact in message.metadata.items()
        if name in {"from", "message_id"} and name not in document.metadata
    }
    return replace(
        document,
        occurred=document.occurred or message.occurred,
        metadata={**facts, **document.metadata, "attached_to": message.title},
    )
