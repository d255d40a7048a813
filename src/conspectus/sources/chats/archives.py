"""The `Archives` port over the local file system."""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.model.channels import ARCHIVE_KINDS, ArchiveKind, ChannelArchive, ChatArchive
from conspectus.settings import Settings
from conspectus.sources.chats.discord import looks_like_discord, read_discord
from conspectus.sources.chats.export_files import OTHER_FILES, Export, ExportFile, open_export
from conspectus.sources.chats.irc import looks_like_irc, read_irc
from conspectus.sources.chats.jsonl import TEXT, is_message, read_jsonl, starts_list_of_messages
from conspectus.sources.chats.slack import is_slack, read_slack
from conspectus.sources.encoding import decode
from conspectus.sources.json_values import load_json
from conspectus.sources.notices import Notices

HEAD_BYTES = 65_536
HEADS = 1_000
LINES = 50
MAX_LINE_LENGTH = 20_000
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
DISCORD_ORIGIN = re.compile(r'"(?:guild|channel)"\s*:\s*\{')
DISCORD_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
LONG_LINE = re.compile(rf'"(?:{"|".join(TEXT)})"\s*:\s*"')
SUFFIXES: dict[ArchiveKind, tuple[str, ...]] = {
    "discord": (".json",),
    "irc": (".log", ".txt", ".weechatlog", ".irclog"),
    "jsonl": (".jsonl", ".ndjson"),
}


def recognize_platform(export: Export) -> ArchiveKind | None:
    """Return the platform of the export; None if it is unknown."""
    if is_slack(export):
        return "slack"
    kinds = (_kind(export, part) for part in export.parts[:HEADS])
    return next((kind for kind in kinds if kind is not None), None)


def parts_of(export: Export, kind: ArchiveKind, notices: Notices) -> Sequence[ExportFile]:
    """Return the export's files of a type; others are counted in a notice. A single file is kept."""
    if kind == "slack":
        return export.parts if is_slack(export) else ()
    if len(export.parts) == 1:
        return export.parts
    matching_parts = []
    for part in export.parts:
        if part.base.lower().endswith(SUFFIXES[kind]) or _kind(export, part) == kind:
            matching_parts.append(part)
        else:
            notices.note(OTHER_FILES, part.name)
    return matching_parts


def _kind(export: Export, part: ExportFile) -> ArchiveKind | None:
    head = export.peek(part, HEAD_BYTES)
    if b"\0" in head and not head.startswith(WIDE):
        return None
    is_complete = len(head) < HEAD_BYTES
    decoded = decode(head if is_complete else head[: head.rfind(b"\n") + 1] or head)
    if decoded is None or not decoded.text.strip():
        return None
    text = decoded.text.removeprefix("\ufeff")
    lines = [line for line in text.split("\n") if line.strip()][:LINES]
    values = [load_json(line) for line in lines if line.lstrip().startswith("{")]
    has_origin, has_messages = DISCORD_ORIGIN.search(text), DISCORD_MESSAGES.search(text)
    if any(map(looks_like_discord, values[:1])):
        return "discord"
    # One document over many lines, of which some may be whole messages.
    if values[:1] == [None] and text.lstrip().startswith("{") and has_origin and has_messages:
        return "discord"
    if any(map(is_message, values)) or starts_list_of_messages(text):
        return "jsonl"
    if text.lstrip().startswith("{"):
        return "discord" if has_origin or has_messages else "jsonl" if LONG_LINE.search(text) else None
    return "irc" if looks_like_irc(line[:MAX_LINE_LENGTH] for line in lines) else None


@dataclass(frozen=True, slots=True)
class LocalArchives:
    """Reads exports from disk, within the limits of the settings."""

    settings: Settings = field(default_factory=Settings)

    def read(self, path: Path, *, kind: ArchiveKind | None = None) -> ChatArchive:
        """Return all channels of an export. Its platform is detected if `kind` is not given.

        Raises UnreadableFile (also if everything is damaged), UnsupportedContent or TooLarge.
        """
        notices = Notices()
        with open_export(path, self.settings, notices) as export:
            platform = kind or recognize_platform(export)
            if platform is None:
                raise UnsupportedContent(str(path), f"is not a known export: {', '.join(ARCHIVE_KINDS)}")
            parts = parts_of(export, platform, notices)
            if not parts:
                raise UnsupportedContent(str(path), f"is not an export of the kind {platform}")
            channels = tuple(self._read(platform, export, parts, notices))
        if not channels and notices.damage:
            raise UnreadableFile(str(path), "; ".join(notices.sentences()))
        if not channels:
            notices.note("exports without any message", path.name)
        return ChatArchive(platform, channels, notices.sentences())

    def _read(
        self, kind: ArchiveKind, export: Export, parts: Sequence[ExportFile], notices: Notices
    ) -> Iterator[ChannelArchive]:
        match kind:
            case "slack":
                return read_slack(export, notices)
            case "discord":
                return read_discord(export, parts, notices)
            case "irc":
                return read_irc(export, parts, notices)
            case "jsonl":
                return read_jsonl(export, parts, notices, self.settings)
