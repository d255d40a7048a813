"""The `Archives` port over the local file system."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.model.channels import ARCHIVE_KINDS, ArchiveKind, ChannelArchive, ChatArchive
from conspectus.settings import Settings
from conspectus.sources.chats.discord import read_discord
from conspectus.sources.chats.export_files import ArchiveLimits, Export, ExportFile, opened
from conspectus.sources.chats.format_detection import parts_of, recognised
from conspectus.sources.chats.irc import read_irc
from conspectus.sources.chats.jsonl import Bounds, read_jsonl
from conspectus.sources.chats.slack import read_slack
from conspectus.sources.import_notices import Notices


@dataclass(frozen=True, slots=True)
class LocalArchives:
    """Reads exports from disk.

    Limits: bytes of a file (a ZIP archive, a file in it or in a folder), bytes of all files together when
    unpacked, their number, the depth of folders, and what the metadata of one message may hold.
    """

    max_file_bytes: int = 50_000_000
    max_unpacked_bytes: int = 200_000_000
    max_files: int = 1_000_000
    max_depth: int = 64
    max_metadata_bytes: int = 65_536
    max_metadata_depth: int = 16

    @classmethod
    def under(cls, settings: Settings) -> "LocalArchives":
        """With the limits of the settings."""
        return cls(
            max_file_bytes=settings.max_file_bytes,
            max_unpacked_bytes=settings.max_unpacked_bytes,
            max_files=settings.max_files,
            max_depth=settings.max_folder_depth,
            max_metadata_bytes=settings.max_metadata_bytes,
            max_metadata_depth=settings.max_metadata_depth,
        )

    def read(self, path: Path, *, kind: ArchiveKind | None = None) -> ChatArchive:
        """All channels of an export; which platform's is found out where `kind` does not say.

        Raises UnreadableFile, also where there is nothing but damage, UnsupportedContent or TooLarge.
        """
        notices = Notices()
        limits = ArchiveLimits(self.max_file_bytes, self.max_unpacked_bytes, self.max_files, self.max_depth)
        with opened(path, limits, notices) as export:
            chosen = kind or recognised(export)
            if chosen is None:
                raise UnsupportedContent(str(path), f"is no export known here: {', '.join(ARCHIVE_KINDS)}")
            parts = parts_of(export, chosen, notices)
            if not parts:
                raise UnsupportedContent(str(path), f"holds nothing that {chosen} exports hold")
            channels = tuple(self._read(chosen, export, parts, notices))
        if not channels and notices.damage:
            raise UnreadableFile(str(path), "; ".join(notices.sentences()))
        if not channels:
            notices.note("exports without any message", path.name)
        return ChatArchive(chosen, channels, notices.sentences())

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
                return read_jsonl(
                    export, parts, notices, Bounds(self.max_metadata_bytes, self.max_metadata_depth)
                )
