"""Exports of chats and memories among files to add: which command imports them with their structure."""

import io
import zipfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError
from conspectus.model.channels import ChannelArchive
from conspectus.ports import FoundFile
from conspectus.settings import Settings
from conspectus.sources.chats.archives import recognize_platform
from conspectus.sources.chats.discord import read_discord
from conspectus.sources.chats.export_files import (
    ZIP_SIGNATURES,
    Export,
    ExportFile,
    file_opener,
    list_archive,
)
from conspectus.sources.chats.slack import is_slack, read_slack
from conspectus.sources.files.zip_xml import FAULTS
from conspectus.sources.memory_files import has_memories
from conspectus.sources.notices import Notices

MESSAGES: Final = "conspectus messages import"
MEMORIES: Final = "conspectus import memory-formats"
JSON_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".af")


@dataclass(frozen=True, slots=True)
class KnownExports:
    """Recognizes what the importers can read, within the limits of the settings."""

    settings: Settings

    def command_for_file(self, data: bytes, name: str) -> str | None:
        """Return the command that imports a file which its importer can read; None for all other files."""
        notices = Notices()
        try:
            if data.startswith(ZIP_SIGNATURES):
                with zipfile.ZipFile(io.BytesIO(data)) as archive:
                    parts = list_archive(Path(name), archive, notices)
                    return _find_command(Export(name, list(parts), self.settings, notices))
            part = ExportFile(name, partial(io.BytesIO, data))
            return _find_command(Export(name, [part], self.settings, notices))
        except (ConspectusError, *FAULTS):
            # What is damaged or too large is reported when the file is read.
            return None

    def command_for_folder(self, files: Iterable[FoundFile]) -> str | None:
        """Return the command that imports a folder, given its files; None if it is no whole export."""
        parts = [ExportFile(file.name, file_opener(file.path)) for file in files]
        try:
            return _find_command(Export("", parts, self.settings, Notices()))
        except ConspectusError:
            return None


def _find_command(export: Export) -> str | None:
    """Return the command whose importer finds a message or memory in files that are all JSON."""
    if not export.parts or not all(part.base.lower().endswith(JSON_SUFFIXES) for part in export.parts):
        return None
    if is_slack(export):
        return MESSAGES if _has_timed_message(read_slack(export, Notices())) else None
    if len(export.parts) > 1:
        return None
    if recognize_platform(export) == "discord":
        return MESSAGES if _has_timed_message(read_discord(export, export.parts, Notices())) else None
    decoded = export.text(export.parts[0])
    return MEMORIES if decoded is not None and has_memories(decoded.text, export.name) else None


def _has_timed_message(channels: Iterable[ChannelArchive]) -> bool:
    """Return whether the platform's own field gives a message its time. Other JSON has texts, too."""
    return any(message.at is not None for channel in channels for message in channel.messages)
