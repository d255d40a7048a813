"""Which platform an export is from, by what its files hold."""

import codecs
import re
from collections.abc import Sequence

from conspectus.model.channels import ArchiveKind
from conspectus.sources.chats.discord import looks_like_discord
from conspectus.sources.chats.export_files import OTHERS, Export, ExportFile
from conspectus.sources.chats.irc import looks_like_irc
from conspectus.sources.chats.jsonl import TEXT, is_message
from conspectus.sources.chats.slack import is_slack
from conspectus.sources.encoding import decode
from conspectus.sources.import_notices import Notices
from conspectus.sources.json_values import NotJson, load

HEAD_BYTES = 65_536
HEADS = 1_000
LINES = 50
LONGEST_LINE = 20_000
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
DISCORD = re.compile(r'"(?:guild|channel)"\s*:\s*\{|"messages"\s*:\s*\[')
LONG_LINE = re.compile(rf'"(?:{"|".join(TEXT)})"\s*:\s*"')
SUFFIXES: dict[ArchiveKind, tuple[str, ...]] = {
    "discord": (".json",),
    "irc": (".log", ".txt", ".weechatlog", ".irclog"),
    "jsonl": (".jsonl", ".ndjson"),
}


def recognised(export: Export) -> ArchiveKind | None:
    """The platform that the export is from; None if it cannot be said."""
    if is_slack(export):
        return "slack"
    kinds = (_kind(export, part) for part in export.parts[:HEADS])
    return next((kind for kind in kinds if kind is not None), None)


def parts_of(export: Export, kind: ArchiveKind, notices: Notices) -> Sequence[ExportFile]:
    """The files of an export that are of a kind; the others are noted. A single file is taken as it is."""
    if kind == "slack":
        return export.parts if is_slack(export) else ()
    if len(export.parts) == 1:
        return export.parts
    chosen = []
    for part in export.parts:
        if part.base.lower().endswith(SUFFIXES[kind]) or _kind(export, part) == kind:
            chosen.append(part)
        else:
            notices.note(OTHERS, part.name)
    return chosen


def _kind(export: Export, part: ExportFile) -> ArchiveKind | None:
    head = export.peek(part, HEAD_BYTES)
    if b"\0" in head and not head.startswith(WIDE):
        return None
    whole = len(head) < HEAD_BYTES
    decoded = decode(head if whole else head[: head.rfind(b"\n") + 1] or head)
    if decoded is None or not decoded.text.strip():
        return None
    text = decoded.text.removeprefix("\ufeff")
    lines = [line for line in text.split("\n") if line.strip()][:LINES]
    values = [_loaded(line) for line in lines if line.lstrip().startswith("{")]
    if any(map(looks_like_discord, values[:1])):
        return "discord"
    if any(map(is_message, values)):
        return "jsonl"
    if text.lstrip().startswith("{"):
        return "discord" if DISCORD.search(text) else "jsonl" if LONG_LINE.search(text) else None
    return "irc" if looks_like_irc(line[:LONGEST_LINE] for line in lines) else None


def _loaded(line: str) -> object:
    try:
        return load(line)
    except NotJson:
        return None
